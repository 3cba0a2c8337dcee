"""Differentiable functions written in Python."""

from __future__ import annotations

import contextlib
import threading
import traceback
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy

from renga import _core
from renga._runtime.nan_check import has_nan
from renga.core.around_call import FunctionCall
from renga.core.configuration import config
from renga.core.function_hook import FunctionHook, get_function_hooks
from renga.core.gradients import grad as grad, sum_of_known
from renga.core.types import ArrayLike, Grads, Indexes, Variables
from renga.core.variable import Variable, as_variable
from renga.utils import type_check
from renga.utils.type_check import InvalidType

Arrays = tuple[Any, ...]


class _ApplyingThread(threading.local):
    requires_graphs = ""  # by whom


_thread = _ApplyingThread()


@contextlib.contextmanager
def requiring_graphs(caller: str) -> Iterator[None]:
    """A context in which gradients that cannot be differentiated are refused."""
    before, _thread.requires_graphs = _thread.requires_graphs, caller
    try:
        yield
    finally:
        _thread.requires_graphs = before


def _callers() -> list[traceback.FrameSummary]:
    """The stack from which ``apply`` was called, through a handler or not."""
    stack = traceback.extract_stack()
    while (stack[-1].filename, stack[-1].name) != (__file__, "apply"):
        stack.pop()
    return stack[:-1]


class FunctionNode:
    """A function applied once: a node of the graph, between variables.

    A subclass computes arrays in ``forward`` (or ``forward_cpu``) and, written with
    functions of Variables so that it can be differentiated again, gradients in
    ``backward``. ``apply`` runs it.
    """

    chainerx_device = None
    is_elementwise = False
    lazy_grad_sum = False
    stack: list[traceback.FrameSummary] | None = None

    # Set by the core when the function becomes part of the graph.
    _link: Any = None
    _assigned_inputs: tuple[Any, Any] | None = None  # with the link at that time
    _hooks: dict[str, FunctionHook] | None = None
    _inputs_to_retain: Sequence[int] = ()
    _outputs_to_retain: Sequence[int] = ()
    _retained_inputs: tuple[Any, ...] = ()
    _retained_arrays: tuple[Any, ...] | None = None
    _missing_inputs: Sequence[int] = ()
    # Inputs and outputs, for hooks after the forward pass.
    _variables: tuple[tuple[Variable, ...], tuple[Variable, ...]] | None = None

    @property
    def inputs(self) -> tuple[_core.VariableNode, ...] | None:
        """The variable nodes of the inputs; None outside the graph.

        Others may be assigned, as tests of functions do; a backward pass goes to those
        of the graph.
        """
        if self._assigned_inputs is not None:
            link, inputs = self._assigned_inputs
            if link is self._link:  # not applied since
                return inputs
        return None if self._link is None else self._link.inputs

    @inputs.setter
    def inputs(self, inputs: object) -> None:
        self._assigned_inputs = (self._link, inputs)

    @property
    def outputs(self) -> tuple[weakref.ref[_core.VariableNode], ...] | None:
        """Weak references to the outputs' variable nodes; None outside the graph."""
        return None if self._link is None else self._link.outputs

    @property
    def rank(self) -> int:
        """The length of the longest path from a leaf to the inputs."""
        return 0 if self._link is None else self._link.rank

    @property
    def label(self) -> str:
        """The function's name in messages and drawings."""
        return type(self).__name__

    @property
    def output_data(self) -> Arrays:
        """The arrays of the outputs, None for those not retained.

        Raises:
            RuntimeError: no output was retained.
        """
        if self._retained_arrays is None or self.outputs is None:
            raise RuntimeError(f"{self.label}: expected retained outputs, got none")
        retained = dict(zip(self._outputs_to_retain, self._retained_arrays))
        return tuple(retained.get(i) for i in range(len(self.outputs)))

    def __call__(self, *args: Any, **kwargs: Any) -> object:
        raise RuntimeError(f"{self.label}: expected apply(inputs), got a call")

    def apply(self, inputs: Iterable[ArrayLike]) -> tuple[Variable, ...]:
        """Computes the outputs for Variables or arrays, and records the graph."""
        xs = tuple([as_variable(x) for x in inputs])
        handler = _core.around_call()
        if handler is None:
            return self._apply(xs)
        call = FunctionCall(lambda *given: self._apply(given), xs, {}, self)
        ys: tuple[Variable, ...] = call.surround(handler)
        return ys

    def _apply(self, xs: tuple[Any, ...]) -> tuple[Variable, ...]:
        in_data = tuple([x.array for x in xs])
        missing = [i for i, array in enumerate(in_data) if array is None]
        if missing:  # None was given, of which the graph has a constant
            nothing = Variable(numpy.empty(0, numpy.float32), requires_grad=False)
            xs = tuple([nothing if i in missing else x for i, x in enumerate(xs)])
        self._missing_inputs = missing
        if config.debug:
            self.stack = _callers()
        if config.type_check:
            self._check_types(in_data)
        self._inputs_to_retain = self._outputs_to_retain = ()
        hooks = self._all_hooks()
        for hook in hooks:
            hook.forward_preprocess(self, in_data)
        outputs = self.forward(in_data)
        arrays = self._checked_outputs(outputs)
        ys = _core.record_python(self, xs, arrays)
        if self._link is not None:
            self._retain(xs, ys, outputs)
        if arrays is not outputs:
            ys = tuple([Variable() if o is None else y for o, y in zip(outputs, ys)])
        self._variables = xs, ys
        for hook in hooks:
            hook.forward_postprocess(self, in_data)
        self._variables = None
        return ys

    def forward(self, inputs: Arrays) -> Arrays:
        """The arrays of the outputs."""
        if any(not isinstance(x, numpy.ndarray) for x in inputs):
            return self.forward_gpu(inputs)
        return self.forward_cpu(inputs)

    def forward_cpu(self, inputs: Arrays) -> Arrays:
        """The arrays of the outputs, for NumPy arrays."""
        raise NotImplementedError(f"{self.label}: expected forward or forward_cpu")

    def forward_gpu(self, inputs: Arrays) -> Arrays:
        """The arrays of the outputs, for CuPy arrays."""
        raise NotImplementedError(f"{self.label}: expected forward or forward_gpu")

    def backward(self, target_input_indexes: Indexes, grad_outputs: Variables) -> Grads:
        """The gradients of the target inputs, as Variables or None.

        ``grad_outputs`` are Variables, None for outputs that no gradient reached.
        """
        return (None,) * len(target_input_indexes)

    def backward_accumulate(
        self,
        target_input_indexes: tuple[int, ...],
        grad_outputs: tuple[Variable, ...],
        grad_inputs: tuple[Variable | None, ...],
    ) -> tuple[Variable | None, ...]:
        """``grad_inputs`` plus the gradients from ``backward``."""
        hooks = tuple(self._hooks.values()) if self._hooks else ()
        arguments = self._hook_arguments(grad_outputs) if hooks else ()
        for hook in hooks:
            hook.backward_preprocess(self, *arguments)
        gxs: Sequence[Any] = self.backward(target_input_indexes, grad_outputs)
        for hook in hooks:
            hook.backward_postprocess(self, *arguments)
        gxs = tuple(self._gradients_asked_for(gxs, target_input_indexes))
        if config.debug:
            self._check_gradients(target_input_indexes, gxs)
        if _thread.requires_graphs:
            self._require_graph(grad_outputs, gxs)
        return tuple(map(sum_of_known, grad_inputs, gxs))

    def _gradients_asked_for(self, gxs: Any, indexes: tuple[int, ...]) -> Sequence[Any]:
        """The gradients of some inputs, which ``backward`` may return for all."""
        if isinstance(gxs, (tuple, list)):
            if len(gxs) == len(indexes):
                return gxs
            if len(gxs) == len(self.inputs or ()):
                return [gxs[i] for i in indexes]
            got = str(len(gxs))
        else:
            got = str(type(gxs))
        raise ValueError(
            f"number of gradients returned from backward is incorrect ({self.label}): "
            f"expected a tuple of {len(indexes)}, got {got}"
        )

    def _check_gradients(self, indexes: tuple[int, ...], gxs: Sequence[Any]) -> None:
        """Raises unless gradients are like their inputs and have no NaN."""
        for i, gx in zip(indexes, gxs):
            if gx is None:
                continue
            if not isinstance(gx, Variable):
                raise ValueError(self._fault("type", i, "a Variable", type(gx)))
            x = self.inputs[i]  # type: ignore[index]
            for name in ("shape", "dtype"):
                expected, got = getattr(x, name), getattr(gx, name)
                if expected != got:
                    raise (ValueError if name == "shape" else TypeError)(
                        self._fault(name, i, expected, got)
                    )
            if has_nan(gx.array):
                raise RuntimeError(
                    f"NaN is detected on backward computation of {self.label}"
                    + self._where_called()
                )

    def _fault(self, what: str, i: int, expected: Any, got: Any) -> str:
        return (
            f"{what} of gradients returned from backward is incorrect ({self.label}): "
            f"expected {expected} for input {i}, got {got}{self._where_called()}"
        )

    def _where_called(self) -> str:
        """The stack of the call, which is known in debug mode."""
        lines = traceback.format_list(self.stack or [])
        return f"\nStacktrace of the call:\n{''.join(lines)}" if lines else ""

    def _require_graph(self, gys: tuple[Any, ...], gxs: Sequence[Any]) -> None:
        """Raises RuntimeError for gradients that are no functions of Variables."""
        nodes = [gy.node for gy in gys if gy is not None]
        for gx in gxs:
            if gx is not None and gx.creator_node is None and gx.node not in nodes:
                raise RuntimeError(
                    f"{_thread.requires_graphs}: expected functions that can be "
                    f"differentiated twice, got {self.label}, whose backward does not "
                    "compute with functions of Variables"
                )

    def check_type_forward(self, in_types: type_check.InTypes) -> None:
        """Raises InvalidType unless the inputs fit; written with ``type_check``."""

    def retain_inputs(self, indexes: Iterable[int]) -> None:
        """Keeps inputs for ``backward``; called in ``forward``."""
        self._inputs_to_retain = tuple(indexes)

    def retain_outputs(self, indexes: Iterable[int]) -> None:
        """Keeps outputs for ``backward``; called in ``forward``."""
        self._outputs_to_retain = tuple(indexes)

    def get_retained_inputs(self) -> tuple[Variable, ...]:
        """The inputs retained, as Variables of the graph; None for what is None."""
        xs: list[Any] = [x.get_variable() for x in self._retained_inputs]
        for position, i in enumerate(self._inputs_to_retain):
            if i in self._missing_inputs:
                xs[position] = None
        return tuple(xs)

    def get_retained_outputs(self) -> tuple[Variable, ...]:
        """The outputs retained, as Variables of the graph; None for what is None."""
        if self._retained_arrays is None:
            return ()
        pairs = zip(self._outputs_to_retain, self._retained_arrays)
        ys: list[Any] = [
            a if a is None else self._link.get_output(i, a) for i, a in pairs
        ]
        return tuple(ys)

    def unchain(self) -> None:
        """Disconnects the inputs and frees the graph before them."""
        if self._link is not None:
            self._link.unchain()
        self._retained_inputs = ()
        self._retained_arrays = None

    @property
    def local_function_hooks(self) -> dict[str, FunctionHook]:
        """The hooks added to this function, by name."""
        if self._hooks is None:
            self._hooks = {}
        return self._hooks

    def add_hook(self, hook: FunctionHook, name: str | None = None) -> None:
        """Adds a hook to this function; KeyError if the name is taken."""
        name = name or hook.name
        if name in self.local_function_hooks:
            raise KeyError(f"{self.label}: expected a new hook, got {name!r} again")
        self.local_function_hooks[name] = hook
        hook.added(self)

    def delete_hook(self, name: str) -> None:
        """Removes a hook from this function; KeyError if there is no such hook."""
        self.local_function_hooks.pop(name).deleted(self)

    def _all_hooks(self) -> tuple[FunctionHook, ...]:
        hooks = get_function_hooks()
        if self._hooks:
            hooks = {**hooks, **self._hooks}
        return tuple(hooks.values())

    def _hook_arguments(self, grad_outputs: tuple[Any, ...]) -> tuple[Arrays, Arrays]:
        in_data = tuple([x.data for x in self.inputs or ()])
        return in_data, tuple([None if g is None else g.array for g in grad_outputs])

    def _check_types(self, in_data: Arrays) -> None:
        try:
            with type_check.light_mode:
                self.check_type_forward(type_check.get_light_types(in_data))
            return
        except InvalidType:
            pass
        with type_check.get_function_check_context(self):
            self.check_type_forward(type_check.get_types(in_data, "in_types", False))

    def _checked_outputs(self, outputs: Any) -> Arrays:
        """The outputs, with empty arrays in the place of None."""
        arrays = outputs
        if not isinstance(outputs, tuple) or not type_check.same_types(*outputs):
            arrays = self._filled(outputs)
        if config.debug and any(has_nan(y) for y in arrays):
            raise RuntimeError(f"{self.label}: expected numbers from forward, got NaN")
        return arrays

    def _filled(self, outputs: Any) -> Arrays:
        given = outputs if isinstance(outputs, tuple) else (outputs,)
        known = [y for y in given if y is not None]
        if given is outputs and known and type_check.same_types(*known):
            nothing = numpy.empty(0, known[0].dtype)
            return tuple([nothing if y is None else y for y in outputs])
        kind = "" if given is not outputs else " of ndarrays"
        raise TypeError(
            f"forward output must be a tuple{kind} ({self.label}), got "
            f"{type(outputs).__name__} of {[type(y).__name__ for y in given]}"
        )

    def _retain(
        self, xs: tuple[Variable, ...], ys: tuple[Variable, ...], outputs: Arrays
    ) -> None:
        retained = [xs[i] for i in self._inputs_to_retain]
        for var in (*retained, *(ys[i] for i in self._outputs_to_retain)):
            var.retain_data()
        self._retained_inputs = tuple([x.node for x in retained])
        if self._outputs_to_retain:
            self._retained_arrays = tuple(
                [
                    None if outputs[i] is None else ys[i].array
                    for i in self._outputs_to_retain
                ]
            )
