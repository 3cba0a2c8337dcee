"""Writes a program as an ONNX graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy

from renga.exporters.onnx import (  # noqa: F401
    elementwise,
    images,
    indices,
    losses,
    normalization,
    recurrent,
    shapes,
)
from renga.exporters.onnx.registry import FUNCTIONS, OPERATORS, Writer
from renga.program import Call, Program, Value

if TYPE_CHECKING:
    import onnx


class OnnxGraph:
    """The nodes and constants that writers add for the calls of a program.

    Args:
        program: its parameters keep their names, with dots.
        inputs: the names of its inputs.
    """

    def __init__(self, program: Program, inputs: Mapping[str, Value]) -> None:
        self._inputs = inputs
        self._names = {value: name for name, value in inputs.items()}
        self._nodes: list[Any] = []
        self._constants: dict[str, numpy.ndarray] = {}
        self._unknown: dict[Value, str] = {}  # what computes a value
        self._site = ""  # of the call that is written, for errors
        self._count = 0
        for call in program.calls:
            if call.depth == 0:
                self._write(call)

    def _write(self, call: Call) -> None:
        function = f" of F.{call.function}" if call.function else ""
        self._site = f"{function} ({call.source})" if call.source else function
        write = self._writer_of(call)
        of_node = () if call.node is None else (call,)
        names = write and write(self, call.results, *of_node, *call.arguments)
        if names is None:  # refused where the results are used
            names, label = [], f"{call.operation}{self._site}"
            self._unknown.update(dict.fromkeys(call.results, label))
        names = [names] if isinstance(names, str) else names
        self._names.update(zip(call.results, names))

    def _writer_of(self, call: Call) -> Writer | None:
        """The writer of a call; of a FunctionNode's, it takes the call first."""
        if call.node is None:
            return OPERATORS.get(call.operation)
        return FUNCTIONS.get(type(call.node))

    def node(
        self, op: str, *inputs: object, outputs: int = 1, **attributes: Any
    ) -> str | list[str]:
        """Adds a node; the name of its output, or the names of several.

        Inputs are Values, arrays, numbers, names, or None for one left out.
        """
        import onnx

        names = ["" if x is None else self.name_of(x) for x in inputs]
        made = [self.fresh_name(op.lower()) for _ in range(outputs)]
        node = onnx.helper.make_node(op, names, made, **attributes)
        node.doc_string = self._site
        self._nodes.append(node)
        return made[0] if outputs == 1 else made

    def add_node(self, node: object) -> None:
        """Adds a node that is complete."""
        self._nodes.append(node)

    def fresh_name(self, stem: str) -> str:
        """A name that no value has."""
        self._count += 1
        return f"{stem}_{self._count}"

    def name_of(self, x: object) -> str:
        """The name of a value; those that nothing computes become constants."""
        if isinstance(x, str):
            return x
        if not isinstance(x, Value):
            return self._constant(self.fresh_name("constant"), x)
        if x in self._unknown:
            raise NotImplementedError(
                f"export: {self._unknown[x]} has no counterpart in ONNX"
            )
        if x not in self._names:
            name = x.name.strip("/").replace("/", ".") or self.fresh_name("array")
            self._names[x] = self._constant(name, x.variable.array)
        return self._names[x]

    def proto(self, name: str, outputs: Mapping[str, Value]) -> onnx.GraphProto:
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

    def _constant(self, name: str, x: Any) -> str:
        self._constants[name] = numpy.asarray(x)
        return name


def _information(name: str, x: Value) -> Any:
    import onnx

    dtype = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
    return onnx.helper.make_tensor_value_info(name, dtype, x.shape)
