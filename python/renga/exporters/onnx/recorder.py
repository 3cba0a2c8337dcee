"""Records the operations of a forward pass as nodes of an ONNX graph."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from typing import Any

import numpy

from renga import functions
from renga.core.function_hook import FunctionHook
from renga.core.function_node import FunctionNode
from renga.core.operations import operation_name
from renga.core.variable import Variable
from renga.exporters.onnx import (  # noqa: F401
    elementwise,
    images,
    indices,
    losses,
    normalization,
    recurrent,
    shapes,
)
from renga.exporters.onnx.registry import FUNCTIONS, OPERATORS, WriterOf


class Recorder(FunctionHook):
    """A hook that adds one or more nodes for every operation of the core."""

    name = "OnnxRecorder"

    def __init__(
        self,
        parameters: Mapping[str, Any],
        writer_of: WriterOf | None = None,
        whole: Collection[str] = (),
    ) -> None:
        # A writer for a function that a hook sees, in place of the registered one, and
        # Chainer's classes of functions that are seen as one.
        self._writer_of, self._whole = writer_of, whole
        self._names: dict[int, str] = {}
        self._arrays: dict[Any, str] = {}  # of integers and bools, by their memory
        self._kept: list[Any] = []  # kept alive, so that ids stay unique
        self._inputs: dict[str, Variable] = {}
        self._nodes: list[Any] = []
        self._constants: dict[str, numpy.ndarray] = {}
        self._unknown: dict[int, str] = {}  # what computed a result, by its id
        self._parameters = {id(p): name for name, p in parameters.items()}
        self._count = 0

    def sees_operations_of(self, function_class: str) -> bool:
        """True, but for functions that have one writer."""
        return function_class not in self._whole

    def add_input(self, name: str, x: Variable) -> None:
        """Makes ``x`` an input of the graph."""
        self._inputs[name] = x
        self._call(x, name)

    def forward_postprocess(self, function: Any, in_data: Any) -> None:
        """Records an operation that has run."""
        if isinstance(function, FunctionNode):
            assert function._variables is not None
            inputs, results = function._variables
            own = FUNCTIONS.get(type(function))
            arguments = (function, *inputs)
        else:
            own = OPERATORS.get(operation_name(function))
            arguments, results = function.arguments, function.results
        given = None if self._writer_of is None else self._writer_of(function)
        write = own if given is None else given
        names = None if write is None else write(self, results, *arguments)
        if names is None:  # refused where the results are used
            for y in results:
                self._kept.append(y)
                self._unknown[id(y)] = f"{function.label}{_call_site()}"
            return
        for y, name in zip(results, names):
            self._call(y, name)

    def node(self, op: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node; the name of its output, or the names of several.

        Inputs are Variables, arrays, numbers, names, or None for one left out.
        """
        import onnx

        names = ["" if x is None else self.name_of(x) for x in inputs]
        made = [self.fresh_name(op.lower()) for _ in range(outputs)]
        node = onnx.helper.make_node(op, names, made, **attributes)
        node.doc_string = _call_site()
        self._nodes.append(node)
        return made[0] if outputs == 1 else made

    def add_node(self, node: Any) -> None:
        """Adds a node that is complete."""
        self._nodes.append(node)

    def fresh_name(self, stem: str) -> str:
        """A name that no value has."""
        self._count += 1
        return f"{stem}_{self._count}"

    def name_of(self, x: Any) -> str:
        """The name of a value; unknown values become constants."""
        if isinstance(x, str):
            return x
        if not isinstance(x, Variable):
            # Operations take indices and conditions as arrays.
            array = numpy.asarray(x)
            known = self._arrays.get(_memory(array))
            return self._constant("constant", array) if known is None else known
        if id(x) in self._names:
            return self._names[id(x)]
        if id(x) in self._parameters:
            name = self._parameters[id(x)]
            self._constants[name] = numpy.asarray(x.array)
        else:
            self._refuse_computed(x)
            name = self._constant("constant", numpy.asarray(x.array))
        self._call(x, name)
        return name

    def is_computed(self, x: Any) -> bool:
        """Whether an array is one that the graph has as an input or computes."""
        return isinstance(x, numpy.ndarray) and _memory(x) in self._arrays

    def graph(self, name: str, outputs: Mapping[str, Variable]) -> Any:
        """The graph that computes ``outputs``: the nodes that they depend on."""
        import onnx

        for output, y in outputs.items():
            self._nodes.append(
                onnx.helper.make_node("Identity", [self.name_of(y)], [output])
            )
        needed, nodes = set(outputs), []
        for node in reversed(self._nodes):
            if needed & set(node.output):
                needed |= set(node.input)
                nodes.append(node)
        constants = [
            onnx.numpy_helper.from_array(array, key)
            for key, array in self._constants.items()
            if key in needed
        ]
        return onnx.helper.make_graph(
            nodes[::-1],
            name,
            [_information(key, x) for key, x in self._inputs.items()],
            [_information(key, y) for key, y in outputs.items()],
            constants,
        )

    def _call(self, x: Variable, name: str) -> None:
        self._kept.append(x)
        self._names[id(x)] = name
        if x.dtype.kind != "f" and x.size:
            self._arrays[_memory(x.array)] = name

    def _constant(self, stem: str, array: numpy.ndarray) -> str:
        name = self.fresh_name(stem)
        self._constants[name] = array
        return name

    def _refuse_computed(self, x: Variable) -> None:
        label = self._unknown.get(id(x))
        if label is not None:
            raise NotImplementedError(f"export: {label} has no counterpart in ONNX")


def _call_site() -> str:
    """The function of ``renga.functions`` or the link that is running, and its caller.

    The operation that fails is often a part of what the user has called.
    """
    called, frame = "", sys._getframe(1)
    while frame.f_back is not None:
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if module.startswith("renga.functions."):
            if hasattr(functions, name):  # else a part of one
                called = f" of F.{name}"
        elif not module.startswith("renga."):
            return f"{called} ({frame.f_code.co_filename}:{frame.f_lineno})"
        frame = frame.f_back
    return called


def _memory(x: numpy.ndarray) -> Any:
    return x.__array_interface__["data"][0], x.shape, x.strides, x.dtype


def _information(name: str, x: Variable) -> Any:
    import onnx

    dtype = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
    return onnx.helper.make_tensor_value_info(name, dtype, x.shape)
