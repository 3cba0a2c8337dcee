"""Old-style functions, whose ``backward`` computes with plain arrays."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from traceback import FrameSummary
from typing import Any

import numpy

from renga import _core
from renga.core.configuration import force_backprop_mode, no_backprop_mode
from renga.core.function_hook import FunctionHook
from renga.core.function_node import FunctionNode
from renga.core.types import ArrayLike, Grads, Indexes
from renga.core.variable import Variable
from renga.utils import type_check

__all__ = [
    "Function",
    "FunctionAdapter",
    "FunctionHook",
    "force_backprop_mode",
    "no_backprop_mode",
]

Arrays = tuple[Any, ...]


class FunctionAdapter(FunctionNode):
    """The graph node of a ``Function``."""

    def __init__(self, function: Function) -> None:
        self._function = function

    @property
    def function(self) -> Function:
        """The function it runs."""
        return self._function

    @property
    def label(self) -> str:
        return self._function.label

    def check_type_forward(self, in_types: type_check.InTypes) -> None:
        self._function.check_type_forward(in_types)

    def forward(self, inputs: Arrays) -> Arrays:
        # By default all inputs are retained.
        self.retain_inputs(range(len(inputs)))
        return self._function.forward(inputs)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Grads) -> Grads:
        in_data = [None] * len(self.inputs or ())
        for i, x in zip(self._inputs_to_retain, self._retained_inputs):
            in_data[i] = x.data
        gys = tuple([None if g is None else g.array for g in grad_outputs])
        gxs = self._function.backward(tuple(in_data), gys)
        if len(gxs) < len(in_data):  # more are left out, as Chainer does
            raise ValueError(
                f"{self.label}: expected {len(in_data)} gradients from backward, "
                f"got {len(gxs)}"
            )
        found = [gxs[i] for i in target_input_indexes]
        if any(g is not None and not hasattr(g, "dtype") for g in found):
            raise TypeError(
                f"{self.label}: expected arrays from backward, got "
                f"{[type(g).__name__ for g in found]}{self._where_called()}"
            )
        known = [g for g in found if g is not None]
        if known and _core.backprop_enabled():
            # They depend on all of these, in a way that only arrays know.
            sources = list(map(_placeholder, self.inputs or ()))
            sources += [g for g in grad_outputs if g is not None]
            made = iter(_Gradients(self.label, known).apply(sources))
            return tuple(None if g is None else next(made) for g in found)
        return tuple(None if g is None else Variable(g) for g in found)


def _placeholder(node: Any) -> Any:
    """A Variable at a node of the graph; without elements if they are not retained."""
    x = node.get_variable()
    if x.array is None:
        x.array = numpy.broadcast_to(numpy.zeros((), node.dtype), node.shape)
    return x


class _Gradients(FunctionNode):
    """The gradients of a ``Function``, which cannot be differentiated."""

    def __init__(self, function: str, arrays: list[Any]) -> None:
        self._function = function
        self._arrays = arrays

    def forward(self, inputs: Arrays) -> Arrays:
        arrays, self._arrays = self._arrays, []
        return tuple(arrays)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Grads) -> Grads:
        raise RuntimeError(
            f'cannot twice-differentiate an old style Function "{self._function}": '
            "write it as a FunctionNode, whose backward computes with Variables"
        )


class Function:
    """A differentiable function of arrays, which cannot be differentiated twice.

    A subclass overrides ``forward`` and ``backward``, or those for one kind of device;
    calling it applies it to Variables or arrays.
    """

    # The node of the next call is its own; that of the latest belongs to the graph,
    # which it would keep alive.
    _next_node: FunctionAdapter | None = None
    _latest_node: weakref.ref[FunctionAdapter] | None = None

    def __call__(self, *inputs: ArrayLike) -> Any:
        node = self.node
        if node.inputs is not None:
            node = self._next_node = FunctionAdapter(self)
        ys = node.apply(inputs)
        self._latest_node, self._next_node = weakref.ref(node), None
        return ys[0] if len(ys) == 1 else ys

    @property
    def node(self) -> FunctionAdapter:
        """The graph node of its latest call, or of the next if that one is freed."""
        node = self._next_node
        if node is None and self._latest_node is not None:
            node = self._latest_node()
        if node is None:
            node = self._next_node = FunctionAdapter(self)
        return node

    @property
    def inputs(self) -> tuple[_core.VariableNode, ...] | None:
        """The variable nodes of the inputs."""
        return self.node.inputs

    @property
    def outputs(self) -> tuple[weakref.ref[_core.VariableNode], ...] | None:
        """Weak references to the variable nodes of the outputs."""
        return self.node.outputs

    @property
    def output_data(self) -> Arrays:
        """The arrays of the outputs that were retained."""
        return self.node.output_data

    @property
    def rank(self) -> int:
        """The length of the longest path from a leaf to the inputs."""
        return self.node.rank

    @property
    def label(self) -> str:
        """The function's name in messages and drawings."""
        return type(self).__name__

    @property
    def stack(self) -> list[FrameSummary] | None:
        """Where it was called, in debug mode."""
        return self.node.stack

    @property
    def local_function_hooks(self) -> dict[str, FunctionHook]:
        """The hooks added to it, by name."""
        return self.node.local_function_hooks

    def add_hook(self, hook: FunctionHook, name: str | None = None) -> None:
        """Adds a hook to it; KeyError if the name is taken."""
        self.node.add_hook(hook, name)

    def delete_hook(self, name: str) -> None:
        """Removes a hook from it; KeyError if there is no such hook."""
        self.node.delete_hook(name)

    def check_type_forward(self, in_types: type_check.InTypes) -> None:
        """Raises InvalidType unless the inputs fit."""

    def forward(self, inputs: Arrays) -> Arrays:
        """The arrays of the outputs."""
        return self._on_device("forward", inputs)(inputs)

    def backward(self, inputs: Arrays, grad_outputs: Arrays) -> Arrays:
        """The gradients of all inputs, None for those without one."""
        return self._on_device("backward", inputs + grad_outputs)(inputs, grad_outputs)

    def forward_cpu(self, inputs: Arrays) -> Arrays:
        """The arrays of the outputs, for NumPy arrays."""
        raise NotImplementedError(f"{self.label}: expected forward or forward_cpu")

    def forward_gpu(self, inputs: Arrays) -> Arrays:
        """The arrays of the outputs, for CuPy arrays."""
        raise NotImplementedError(f"{self.label}: expected forward or forward_gpu")

    def backward_cpu(self, inputs: Arrays, grad_outputs: Arrays) -> Arrays:
        """The gradients of all inputs, for NumPy arrays; None unless overridden."""
        return (None,) * len(inputs)

    def backward_gpu(self, inputs: Arrays, grad_outputs: Arrays) -> Arrays:
        """The gradients of all inputs, for CuPy arrays; None unless overridden."""
        return (None,) * len(inputs)

    def _on_device(self, name: str, arrays: Arrays) -> Any:
        known = (numpy.ndarray, type(None))
        on_cpu = all(isinstance(x, known) for x in arrays)
        return getattr(self, f"{name}_{'cpu' if on_cpu else 'gpu'}")

    def retain_inputs(self, indexes: Iterable[int]) -> None:
        """Keeps only these inputs for ``backward``; called in ``forward``."""
        self.node.retain_inputs(indexes)

    def retain_outputs(
        self, indexes: Iterable[int], retain_after_backward: bool = False
    ) -> None:
        """Keeps outputs for ``backward`` in ``output_data``; called in ``forward``."""
        self.node.retain_outputs(indexes)

    def unchain(self) -> None:
        """Disconnects the inputs and frees the graph before them."""
        self.node.unchain()
