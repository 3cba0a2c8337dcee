"""Graphs with the names of Chainer's exporter, and with converters of functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Callable, NamedTuple

import numpy

from renga.chainer.function_classes.creators import name_of_call
from renga.chainer.onnx_chainer.onnx_helper import converting
from renga.chainer.onnx_chainer.replace_func import WrappedFunctionNode
from renga.core.variable import Variable
from renga.exporters.onnx.graph import OnnxGraph
from renga.exporters.onnx.recording import Recording, flat_outputs
from renga.exporters.onnx.registry import Writer
from renga.program import Call, Program, Value

#: Parts of the names of initializers; other constants are nodes.
PARAMETER, ARRAY = "param_", "array_"


class FunctionConverterParams(NamedTuple):
    """What a converter gets: a function, the names of its inputs and outputs."""

    func: Any
    opset_version: int
    input_names: list[str]
    output_names: list[str]
    context: Any


Converter = Callable[[FunctionConverterParams], Any]


class NamedRecording(Recording):
    """Records a model for graphs in which converters may write functions.

    Attributes:
        converters: by the names of Chainer's classes of functions.
        version: of the operators that converters write.
        given: the names of nodes that converters have made.
    """

    converters: Mapping[str, Converter]
    version: int
    given: set[str]

    def graph_of(self, program: Program, inputs: Mapping[str, Value]) -> OnnxGraph:
        return NamedGraph(program, inputs, self.converters, self.version, self.given)

    def outputs_of(self, result: object) -> list[Variable]:
        """The Variables that a model has returned.

        Raises:
            RuntimeError: the result is no Variable, list, tuple or dictionary.
            ValueError: one of several outputs is no Variable.
        """
        outputs = flat_outputs(result)
        for y in outputs:
            if not isinstance(y, Variable):
                kind = RuntimeError if y is result else ValueError
                raise kind(
                    f"export: expected Variables from the model, got {type(y).__name__}"
                )
        return outputs


class NamedGraph(OnnxGraph):
    """The context of converters.

    The last node of a function, and what it computes, has the name of Chainer's class
    and a number: ``ReLU_0``.
    """

    def __init__(
        self,
        program: Program,
        inputs: Mapping[str, Value],
        converters: Mapping[str, Converter],
        version: int,
        given: set[str],
    ) -> None:
        self._converters, self._version, self._given = converters, version, given
        self._calls: Counter[str] = Counter()
        self._function = ""
        super().__init__(program, inputs)

    def add_const(self, array: numpy.ndarray, name: str) -> str:
        """Adds a constant of the function that is converted; its name in the graph."""
        return self._constant(f"{self._function}_const_{name}", array)

    def add_param(
        self, array: numpy.ndarray, name: str, use_original_name: bool = False
    ) -> str:
        """Adds an initializer of that function; its name in the graph."""
        name = name if use_original_name else f"{self._function}_{PARAMETER}{name}"
        return self._constant(name, array)

    def get_name(self, variable: object) -> str:
        """The name in the graph of an array or a value."""
        return self.name_of(variable)

    def _write(self, call: Call) -> None:
        name = _class_of(call)
        self._function = f"{name}_{self._calls[name]}"
        self._calls[name] += 1
        if call.operation == "fixed_batch_normalization":
            self._name_averages(call)
        first = len(self._nodes)
        with converting(self._function):
            super()._write(call)
        nodes = self._nodes[first:]
        if not any(node.name for node in nodes):  # those of converters have names
            self._name_nodes(nodes, call)

    def _writer_of(self, call: Call) -> Writer | None:
        converter = self._converters.get(_class_of(call))
        if converter is None and isinstance(call.node, WrappedFunctionNode):
            converter = _converter_of_operator(call)
        if converter is None:
            return super()._writer_of(call)

        def write(graph: Any, results: Any, *arguments: object) -> list[str]:
            inputs = [graph.name_of(x) for x in arguments if isinstance(x, Value)]
            outputs = self._names_of_outputs(results)
            given = (call.node or call, self._version, inputs, [*outputs], graph)
            for node in converter(FunctionConverterParams(*given)):
                node.name = node.name or self._function
                self._given.add(node.name)
                graph.add_node(node)
            return outputs

        return write

    def _names_of_outputs(self, results: Any) -> list[str]:
        if len(results) == 1:
            return [self._function]
        return [f"{self._function}_{i}" for i in range(len(results))]

    def _name_averages(self, call: Call) -> None:
        """Names running averages by their link, or by the function."""
        prefix = call.link.replace("/", "_")
        prefix = f"param{prefix}" if prefix else f"{self._function}_param"
        for x, name in zip(call.arguments[3:5], ("avg_mean", "avg_var")):
            if isinstance(x, Value) and x not in self._names and not x.name:
                name = f"{prefix}_{name}"
                self._names[x] = self._constant(name, x.variable.array)

    def _name_nodes(self, nodes: list[Any], call: Call) -> None:
        names = zip(self._names_of_outputs(call.results), call.results)
        made = {output for node in nodes for output in node.output}
        new = {self._names[y]: n for n, y in names if self._names.get(y) in made}
        for i, node in enumerate(nodes):
            name = f"{self._function}_tmp_{i}"
            node.name = self._function if len(nodes) == 1 else name
            for j, output in enumerate(node.output):
                is_one_of_several = len(node.output) > 1
                new.setdefault(output, f"{name}_{j}" if is_one_of_several else name)
            node.input[:] = [new.get(name, name) for name in node.input]
            node.output[:] = [new.get(name, name) for name in node.output]
        for y in call.results:
            if y in self._names:
                self._names[y] = new.get(self._names[y], self._names[y])


def _class_of(call: Call) -> str:
    own = getattr(call.node, "custom_function_node_name", None)
    return own or name_of_call(call)


def _converter_of_operator(call: Call) -> Converter | None:
    """Writes a replaced function as the operator that has its name.

    ``AddConstant`` and the like have the attribute ``value`` as a second operand.
    """
    import onnx

    name = call.node.custom_function_node_name
    stem = name.removesuffix("Constant")
    known = {x.name.lower(): x.name for x in onnx.defs.get_all_schemas()}
    operator = known.get(stem.lower())
    if operator is None:
        return None

    def convert(params: FunctionConverterParams) -> Iterator[Any]:
        inputs = params.input_names
        if stem != name:
            value = numpy.asarray(params.func.value, call.operands[0].dtype)
            inputs = [*inputs, params.context.add_const(value, "value")]
        yield onnx.helper.make_node(operator, inputs, params.output_names)

    return convert
