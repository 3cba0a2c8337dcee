"""The base of Chainer's classes of functions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from renga import _core
from renga.core.configuration import using_config
from renga.core.function_hook import get_function_hooks
from renga.core.function_node import FunctionNode
from renga.core.gradients import grad
from renga.core.types import Array, Grads, Indexes
from renga.core.variable import Variable


class OperationNode(FunctionNode):
    """Calls functions of renga on arrays, and again to differentiate them.

    Hooks see the operation, and not the functions that it calls.

    Attributes:
        again: whether ``compute`` runs for a gradient, and must have no side effect.
    """

    again = False
    # What Chainer's class retains for its gradient, and subclasses read in theirs.
    outputs_retained: Sequence[int] = ()
    _operands: tuple[Any, ...] = ()  # nodes of the inputs

    def compute(self, *xs: Any) -> Variable | tuple[Variable, ...]:
        """The outputs, of arrays or of Variables of the graph."""
        raise NotImplementedError

    def forward_cpu(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        """The outputs as arrays; subclasses override it, as they do in Chainer."""
        return self._computed(inputs)

    def forward_gpu(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        """The outputs as arrays, for CuPy arrays."""
        return self._computed(inputs)

    def _computed(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        self.retain_inputs(range(len(inputs)))
        self.retain_outputs(self.outputs_retained)
        with using_config("enable_backprop", False), _without_hooks():
            return tuple(y.array for y in _tuple(self.compute(*inputs)))

    def _retain(self, xs: Any, ys: Any, outputs: Any) -> None:
        super()._retain(xs, ys, outputs)
        # A subclass may retain others, and have this class's gradient.
        for x in xs:
            x.retain_data()
        self._operands = tuple([x.node for x in xs])

    def unchain(self) -> None:
        """Disconnects the inputs and frees the graph before them."""
        super().unchain()
        self._operands = ()

    def backward(self, target_input_indexes: Indexes, grad_outputs: Grads) -> Grads:
        """The gradients, which can be differentiated again."""
        xs: list[Any] = [x.get_variable() for x in self._operands]
        for i in self._missing_inputs:
            xs[i] = None
        self.again = True
        used = [i for i, gy in enumerate(grad_outputs) if gy is not None]
        wanted = [i for i in target_input_indexes if xs[i].dtype.kind == "f"]
        with _without_hooks():
            with using_config("enable_backprop", True):
                ys = _tuple(self.compute(*xs))
            gxs = grad(
                [ys[i] for i in used],
                [xs[i] for i in wanted],
                [grad_outputs[i] for i in used],
                enable_double_backprop=True,
            )
        found = dict(zip(wanted, gxs))
        return tuple(found.get(i) for i in target_input_indexes)


def _tuple(ys: Any) -> tuple[Variable, ...]:
    return tuple(ys) if isinstance(ys, (tuple, list)) else (ys,)


@contextlib.contextmanager
def _without_hooks() -> Iterator[None]:
    hooks = get_function_hooks()
    kept = dict(hooks)
    hooks.clear()
    _core.set_function_hooks(None)
    try:
        yield
    finally:
        hooks.update(kept)
        _core.set_function_hooks(hooks or None)
