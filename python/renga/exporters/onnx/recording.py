"""Records the graphs of a model, for inputs of the same or of other shapes."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable

import numpy

from renga.core import configuration
from renga.core.configuration import no_backprop_mode
from renga.core.link import Link
from renga.core.link.parallel_models import require_serial
from renga.core.variable import Variable, as_array
from renga.exporters.onnx.comparison import check_same
from renga.exporters.onnx.graph import OnnxGraph
from renga.program import Program, Recorder, Value

if TYPE_CHECKING:
    import onnx

# ONNX 1.16 of 2024; ONNX Runtime reads it from 1.18 on.
OPSET = 21


class Recording:
    """Runs copies of a model, a link or a function, and records their graphs.

    Args:
        args: an array, a tuple or a list of arrays, or a dictionary of keywords.
        train: whether the model runs in training mode.

    Raises:
        TypeError: the model is not callable.
    """

    def __init__(
        self,
        model: object,
        args: object,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        train: bool = False,
    ) -> None:
        if not callable(model):
            raise TypeError(
                f"export: expected a link or a function, got {type(model).__name__}"
            )
        if isinstance(model, Link):
            require_serial("export", model)
        _initialize(model, args)
        self._model, self._args, self._train = model, args, train
        self._input_names, self._output_names = input_names, output_names
        self._state = numpy.random.get_state()

    def checked_graph(self) -> onnx.GraphProto:
        """The graph, compared with those for other values of the same shapes.

        Raises:
            NotImplementedError: a constant depends on the values.
        """
        proto = self.graph(self._args)
        try:
            other = self.graph(each(self._args, _with_other_values))
        except (IndexError, ValueError):  # values of a range, such as regions of images
            other = self.graph(each(self._args, lambda x: x[::-1]))
        check_same(proto, other)
        with contextlib.suppress(Exception):  # by which a model refuses values
            other = self.graph(each(self._args, _with_opposite_values))
        check_same(proto, other)
        return proto

    def graph(self, args: object) -> onnx.GraphProto:
        """The graph for arrays of these shapes, as an ``onnx.ModelProto``."""
        import onnx

        numpy.random.set_state(self._state)
        model = copy.deepcopy(self._model)
        inputs = named_inputs(args, self._input_names)
        recorder = Recorder(model)
        recorder.add_inputs(inputs)
        mode = configuration.using_config("train", self._train)
        with mode, no_backprop_mode(), recorder:
            result = run_model(model, args, list(inputs.values()))
        outputs = self.outputs_of(result)
        names = self._output_names
        if names is None:
            names = [f"output_{i}" for i in range(len(outputs))]
        _check_names("output_names", names, len(outputs))
        values = recorder.with_values(outputs)
        graph = self.graph_of(recorder.program, recorder.with_values(inputs))
        proto = onnx.helper.make_model(
            graph.proto(type(model).__name__, dict(zip(names, values))),
            opset_imports=[onnx.helper.make_opsetid("", OPSET)],
            producer_name="renga",
        )
        proto.ir_version = 10  # the version of this operator set
        return proto

    def graph_of(self, program: Program, inputs: Mapping[str, Value]) -> OnnxGraph:
        """The graph that is written for a program."""
        return OnnxGraph(program, inputs)

    def outputs_of(self, result: object) -> list[Variable]:
        """The Variables that a model has returned.

        Raises:
            TypeError: an output is no Variable.
        """
        outputs = flat_outputs(result)
        for y in outputs:
            if not isinstance(y, Variable):
                raise TypeError(
                    f"export: expected Variables from the model, got {type(y).__name__}"
                )
        return outputs


def _initialize(model: Any, args: Any) -> None:
    """Runs a link whose parameters have no values yet."""
    if isinstance(model, Link) and not all(p.is_initialized for p in model.params()):
        with configuration.using_config("train", False), no_backprop_mode():
            first = copy.deepcopy(model)
            run_model(first, args, list(named_inputs(args, None).values()))
        model.copyparams(first)


def run_model(
    model: Callable[..., object], args: object, inputs: Sequence[Variable]
) -> object:
    """What the model computes of the Variables, which have the form of ``args``."""
    if isinstance(args, Mapping):
        return model(**dict(zip(args, inputs)))
    return model(*inputs)


def each(args: object, change: Callable[[numpy.ndarray], numpy.ndarray]) -> Any:
    """The inputs, each changed."""
    if isinstance(args, Mapping):
        return {name: each(x, change) for name, x in args.items()}
    if isinstance(args, (tuple, list)):
        return [each(x, change) for x in args]
    return change(numpy.asarray(as_array(args)))


def _with_other_values(x: numpy.ndarray) -> numpy.ndarray:
    """Values from the range of those of ``x``, where it has any two."""
    y = numpy.flip(x)
    if x.dtype.kind == "f":
        y = 0.75 * y + 0.125
    return numpy.asarray(y, x.dtype)


def _with_opposite_values(x: numpy.ndarray) -> numpy.ndarray:
    """The opposite numbers and truth values, and integers that differ by 1."""
    if x.dtype.kind == "b":
        return ~x
    y = -x if x.dtype.kind == "f" else numpy.where(x > 0, x - 1, x + 1)
    return numpy.asarray(y, x.dtype)


def named_inputs(args: object, names: Sequence[str] | None) -> dict[str, Variable]:
    """The inputs as Variables, by their names in the graph."""
    if isinstance(args, Mapping):
        names = names or list(args)
        arrays = list(args.values())
    else:
        arrays = list(args) if isinstance(args, (tuple, list)) else [args]
        names = names or [f"input_{i}" for i in range(len(arrays))]
    _check_names("input_names", names, len(arrays))
    variables = {}
    for name, given in zip(names, arrays):
        array = as_array(given)
        if not isinstance(array, numpy.ndarray) or array.dtype.kind not in "biuf":
            raise TypeError(f"export: expected arrays as args, got {given!r:.100}")
        variables[name] = Variable(array, requires_grad=False)
    return variables


def _check_names(what: str, names: Any, count: int) -> None:
    """TypeError unless these are strings, ValueError unless so many different ones."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"export: {what}: expected a list of names, got {names!r}")
    if len(names) != count or len(set(names)) != count:
        raise ValueError(f"export: expected {count} {what}, got {list(names)}")


def flat_outputs(result: object) -> list[Any]:
    """The outputs of a model, whatever they are."""
    if isinstance(result, Mapping):
        return list(result.values())
    return list(result) if isinstance(result, (tuple, list)) else [result]
