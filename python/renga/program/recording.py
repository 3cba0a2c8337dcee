"""Records programs: runs a model and takes note of the calls of functions and links."""

from __future__ import annotations

import contextlib
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from renga import _core, functions
from renga.core.around_call import FunctionCall, run_within
from renga.core.backend import get_array_types
from renga.core.function_hook import FunctionHook
from renga.core.link import Link
from renga.core.link.own_values import link_paths
from renga.core.link_hook import (
    LinkHook,
    _ForwardPostprocessCallbackArgs,
    _ForwardPreprocessCallbackArgs,
)
from renga.core.operations import operation_name, operation_of
from renga.core.parameter import Parameter
from renga.core.types import Array
from renga.core.variable import Variable
from renga.program.program import Call, LinkCall, Program, Value
from renga.utils.containers import leaves, map_leaves


def record(
    model: Callable[..., object], *inputs: object, timed: bool = False
) -> Program:
    """Calls ``model(*inputs)`` once, and returns the program that it has run.

    The modes of the thread are those of the run: for the program of a prediction,
    record within ``renga.using_config("train", False)``.

    >>> import numpy, renga
    >>> import renga.functions as F, renga.links as L
    >>> model = renga.Sequential(L.Linear(4, 3), F.relu)
    >>> print(renga.program.record(model, numpy.ones((2, 4), "f")))
    program of Sequential
      %0 float32[2, 4]: input
      /0/W float32[3, 4]: parameter
      /0/b float32[3]: parameter
      %1 float32[2, 3] = linear(x=%0, W=/0/W, b=/0/b)  in /0
      %2 float32[2, 3] = relu(x=%1)  in /
      return %2

    Args:
        model: a link or a function.
        inputs: its arguments.
        timed: whether to measure the seconds of each call.

    Raises:
        TypeError: the model cannot be called.
    """
    if not callable(model):
        raise TypeError(
            f"record: expected a link or a function, got {type(model).__name__}"
        )
    recorder = Recorder(model, timed)
    with recorder:
        recorder.add_inputs(inputs)
        recorder.program.outputs = recorder.with_values(model(*inputs))
    return recorder.program


def is_recording() -> bool:
    """Whether a recorder takes note of this thread's calls."""
    return isinstance(_core.own_around_call(), Recorder)


class Recorder(LinkHook):
    """Records what runs in its context: as ``record`` does, but not only one call.

    Args:
        model: the links that are named.
        timed: whether calls have their seconds.
        now: the clock, or another count of which calls have the differences.

    Attributes:
        program: what has run.
    """

    is_recorder = True

    def __init__(
        self,
        model: object,
        timed: bool = False,
        now: Callable[[], Any] = time.perf_counter,
    ) -> None:
        self.name = f"program at {id(self):#x}"
        self.program = Program(getattr(model, "__name__", type(model).__name__))
        self._now = now if timed else lambda: 0.0
        self._paths = link_paths(model) if isinstance(model, Link) else {}
        self._parameters: dict[int, str] = {}
        if isinstance(model, Link):
            for path, parameter in model.namedparams():
                self._parameters.setdefault(id(parameter), path)
        # The keys are graph nodes, which live as long as the recorder: values are
        # recognized by their nodes, without keeping elements.
        self._values: dict[Any, Value] = {}
        self._numbers = itertools.count()
        # The keys are the memory of arrays, which are kept: inputs, and results of
        # integers and bools, which functions take as arrays.
        self._arrays: dict[Any, tuple[Any, Value]] = {}
        self._calls_of: dict[Value, Call] = {}
        self._links: list[str | None] = []  # that are running; None: not the model's
        # The numbers of calls before they began, and when that was.
        self._starts: list[tuple[int, Any]] = []
        self._depth = 0
        self.inner: Any = None  # the handler within this one

    def __enter__(self) -> Recorder:
        super().__enter__()
        self.inner = _core.own_around_call()
        _core.set_around_call(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _core.set_around_call(self.inner)
        super().__exit__(*error)

    def add_inputs(self, inputs: object) -> None:
        """Takes note of what the model is given: arrays and Variables in containers."""
        for x in leaves(inputs):
            self._add_input(x)

    def with_values(self, tree: object) -> Any:
        """Equal containers, with Values in place of Variables and input arrays."""
        return map_leaves(self._leaf, tree)

    def _run(self, call: Any) -> None:
        run_within(self.inner or _core.default_around_call(), call)

    def __call__(self, call: Any) -> None:
        """The handler around each call."""
        is_python = isinstance(call, FunctionCall)
        if is_python and call.node is None:  # its functions are recorded
            self._run(call)
            return
        operands = call.operands  # before another handler replaces them
        self._depth += 1
        start = self._now()
        try:
            self._run(call)
        finally:
            seconds = self._now() - start
            self._depth -= 1
        results = call.results
        if is_python:  # results that it has left out are not initialized
            results = [y for y in results if y.array is not None]
        node = call.node if is_python else None
        function, source = _caller() if self._depth == 0 else ("", "")
        made = Call(
            operation_name(node or call),
            tuple([path for path in self._links if path is not None]),
            self.with_values(tuple(operands) if is_python else call.arguments),
            tuple(map(self._result, results)),
            traits=operation_of(node or call),
            node=node,
            settings=self.with_values(_settings(node)),
            function=function,
            source=source,
            depth=self._depth,
            seconds=seconds,
        )
        self.program.calls.append(made)
        for y in made.results:
            self._calls_of.setdefault(y, made)

    def forward_preprocess(self, args: _ForwardPreprocessCallbackArgs) -> None:
        self._links.append(self._paths.get(id(args.link)))
        self._starts.append((len(self.program.calls), self._now()))

    def forward_postprocess(self, args: _ForwardPostprocessCallbackArgs) -> None:
        now, path, (start, begin) = self._now(), self._links.pop(), self._starts.pop()
        if path is None:
            return
        given, kwargs = self.with_values((args.args, args.kwargs))
        calls, result = self.program.calls, self.with_values(args.out)
        self.program.links.append(
            LinkCall(
                args.link,
                path,
                args.forward_name,
                given,
                kwargs,
                result,
                range(start, len(calls)),
                now - begin,
            )
        )

    @contextlib.contextmanager
    def timing_backward(self) -> Iterator[None]:
        """A context in which ``backward_seconds`` of the calls are added up."""
        with _BackwardClock(self._now, self._values, self._calls_of):
            yield

    def _leaf(self, x: Any) -> Any:
        if isinstance(x, _core.Variable):
            return self._value_of(x)
        return self._arrays.get(_memory(x), (None, x))[1] if self._arrays else x

    def _value_of(self, x: Any) -> Value:
        """The value of an operand."""
        node = x.node
        value = self._values.get(node)
        if value is None and isinstance(x, Parameter):
            return self._add(x, "parameter", self._parameters.get(id(x), ""), x)
        if value is None and self._arrays and node.creator_node is None:
            _, value = self._arrays.get(_memory(x.array), (None, None))
        if value is None:
            return self._add(x, "constant", "", x)
        return self._values.setdefault(node, value)

    def _add_input(self, x: Any) -> None:
        """Makes an argument of the model a value."""
        is_variable = isinstance(x, _core.Variable)
        if not is_variable and _memory(x) is None:
            return
        variable = x if is_variable else Variable(x, requires_grad=False)
        if variable.node not in self._values:
            value = self._add(variable, "input", "", variable)
            self.program.inputs.append(value)
            if not is_variable:
                self._arrays[_memory(x)] = x, value

    def _result(self, y: Any) -> Value:
        known = self._values.get(y.node)
        return self._add(y, "result") if known is None else known

    def _add(self, x: Any, kind: str, name: str = "", variable: Any = None) -> Value:
        dtype_name = _core.dtype_name(x)
        itemsize = 2 if dtype_name == "bfloat16" else x.dtype.itemsize
        number = -1 if name else next(self._numbers)
        array = x.shape, x.dtype, dtype_name, x.size * itemsize, x.requires_grad
        value = Value(number, kind, *array, name, variable)
        self._values[x.node] = value
        if kind != "constant" and x.dtype.kind in "biu" and x.size and not x.is_meta:
            self._arrays[_memory(x.array)] = x.array, value
        return value


class _BackwardClock(FunctionHook):
    """Adds up the time of backward passes, by the nodes of what was computed."""

    def __init__(
        self,
        now: Callable[[], float],
        values: Mapping[Any, Value],
        calls: Mapping[Value, Call],
    ) -> None:
        self.name = f"backward passes at {id(self):#x}"
        self._now, self._values, self._calls = now, values, calls
        self._starts: list[float] = []

    def backward_preprocess(
        self, function: Any, in_data: Any, out_grad: Sequence[Array | None]
    ) -> None:
        self._starts.append(self._now())

    def backward_postprocess(
        self, function: Any, in_data: Any, out_grad: Sequence[Array | None]
    ) -> None:
        seconds = self._now() - self._starts.pop()
        if self._starts:  # inside of another function
            return
        nodes = [reference() for reference in function.outputs]
        known = [self._values[node] for node in nodes if node in self._values]
        if known and known[0] in self._calls:
            self._calls[known[0]].backward_seconds += seconds


_PLAIN = (int, float, str, slice, numpy.dtype, numpy.generic, type(Ellipsis))


def _settings(node: Any) -> dict[str, Any]:
    """What a FunctionNode computes with besides its operands."""
    kinds: Any = (*_PLAIN, *get_array_types())
    return {
        name: value
        for name, value in (() if node is None else vars(node).items())
        if not name.startswith("_")
        and all(isinstance(x, kinds) or x is None for x in leaves(value))
    }


def _caller() -> tuple[str, str]:
    """The function of ``renga.functions`` that is running, and the user's line."""
    function, frame = "", sys._getframe(1)
    while frame.f_back is not None:
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if module.startswith("renga.functions."):
            if hasattr(functions, name):  # else a part of one
                function = name
        elif not module.startswith("renga."):
            return function, f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return function, ""


def _memory(x: Any) -> tuple[Any, ...] | None:
    """What arrays of the same elements have in common; None of what is no array."""
    for name in ("__array_interface__", "__cuda_array_interface__"):
        described = getattr(x, name, None)
        if described is not None:
            return described["data"][0], x.shape, x.strides, x.dtype.str
    return None
