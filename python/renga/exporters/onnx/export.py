"""Models as ONNX graphs."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Union

import numpy

from renga import configuration
from renga.configuration import no_backprop_mode
from renga.exporters.onnx.batches import for_any_batch
from renga.exporters.onnx.graphs import check_same
from renga.exporters.onnx.recorder import Recorder
from renga.link import Link
from renga.serializers.atomic import atomic_write
from renga.variable import Variable, as_array

# ONNX 1.16 of 2024; ONNX Runtime reads it from 1.18 on.
OPSET = 21

Path = Union[str, "os.PathLike[str]"]


def export(
    model: Any,
    args: Any,
    filename: Path | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_batch: bool = False,
) -> Any:
    """The graph that ``model(*args)`` computes, as an ``onnx.ModelProto``.

    The model, a link or a function, is run in test mode on the given arrays and its
    operations are recorded: shapes are those of these arrays. A second run, with
    other values, shows whether numbers that the model reads from arrays would be
    wrong as constants. Copies of the model are run, so that states stay as they are.
    Parameters are named as in the link, with dots. With ``filename`` the graph is
    saved.

    >>> import numpy, renga.links as L
    >>> from renga.exporters.onnx import export
    >>> proto = export(L.Linear(4, 3), numpy.zeros((2, 4), numpy.float32))
    >>> [node.op_type for node in proto.graph.node]
    ['Gemm', 'Identity']

    Args:
        args: an array, a tuple or a list of arrays, or a dictionary of keywords.
        dynamic_batch: the first axis of every input is the batch, and the graph takes
            batches of any size. The model is run with one and two examples more.

    Raises:
        NotImplementedError: an operation has no counterpart in ONNX, or a constant
            depends on the values of the inputs or the size of the batch.
        TypeError: an input is no array, or an output no Variable.
        ValueError: an input has no batch axis, or no example; names are too few.
        ImportError: the package onnx is not installed.
    """
    import onnx

    if not callable(model):
        raise TypeError(
            f"export: expected a link or a function, got {type(model).__name__}"
        )
    _initialize(model, args)
    state = numpy.random.get_state()

    def graph_of(args: Any) -> Any:
        numpy.random.set_state(state)
        return _graph_of(copy.deepcopy(model), args, input_names, output_names)

    proto = graph_of(args)
    check_same(proto, graph_of(_each(args, _with_other_values)))
    if dynamic_batch:
        larger = _each(args, _with_one_more)
        sizes = [proto, graph_of(larger), graph_of(_each(larger, _with_one_more))]
        proto = for_any_batch(sizes)
    for node in proto.graph.node:
        node.ClearField("doc_string")  # files and lines, for errors
    onnx.checker.check_model(proto, full_check=True)
    if filename is not None:
        with atomic_write(filename) as file:
            file.write(proto.SerializeToString())
    return proto


def _initialize(model: Any, args: Any) -> None:
    """Runs a link whose parameters have no values yet."""
    if isinstance(model, Link) and not all(p.is_initialized for p in model.params()):
        with configuration.using_config("train", False), no_backprop_mode():
            first = copy.deepcopy(model)
            _run(first, args, list(_inputs(args, None).values()))
        model.copyparams(first)


def _run(model: Any, args: Any, inputs: Sequence[Variable]) -> Any:
    if isinstance(args, Mapping):
        return model(**dict(zip(args, inputs)))
    return model(*inputs)


def _each(args: Any, change: Callable[[numpy.ndarray], numpy.ndarray]) -> Any:
    """The inputs, each changed."""
    if isinstance(args, Mapping):
        return {name: _each(x, change) for name, x in args.items()}
    if isinstance(args, (tuple, list)):
        return [_each(x, change) for x in args]
    return change(numpy.asarray(as_array(args)))


def _with_other_values(x: numpy.ndarray) -> numpy.ndarray:
    """Values from the range of those of ``x``, where it has any two."""
    y = numpy.flip(x)
    if x.dtype.kind == "f":
        y = 0.75 * y + 0.125
    return numpy.asarray(y, x.dtype)


def _with_one_more(x: numpy.ndarray) -> numpy.ndarray:
    """The first example once more at the end."""
    if x.ndim == 0 or len(x) == 0:
        raise ValueError(
            f"export: expected inputs with a batch axis and an example, got {x.shape}"
        )
    return numpy.concatenate([x, x[:1]])


def _graph_of(
    model: Any,
    args: Any,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
) -> Any:
    """The graph for arrays of these shapes."""
    import onnx

    inputs = _inputs(args, input_names)
    recorder = Recorder(_parameters(model))
    for name, x in inputs.items():
        recorder.add_input(name, x)
    with configuration.using_config("train", False), no_backprop_mode(), recorder:
        result = _run(model, args, list(inputs.values()))
    outputs = _outputs(result)
    names = output_names
    if names is None:
        names = [f"output_{i}" for i in range(len(outputs))]
    _check_names("output_names", names, len(outputs))
    graph = recorder.graph(type(model).__name__, dict(zip(names, outputs)))
    opset = [onnx.helper.make_opsetid("", OPSET)]
    proto = onnx.helper.make_model(graph, opset_imports=opset, producer_name="renga")
    proto.ir_version = 10  # the version of this operator set
    return proto


def _inputs(args: Any, names: Sequence[str] | None) -> dict[str, Variable]:
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


def _parameters(model: Any) -> dict[str, Any]:
    if not isinstance(model, Link):
        return {}
    return {
        path.strip("/").replace("/", "."): parameter
        for path, parameter in model.namedparams()
    }


def _outputs(result: Any) -> list[Variable]:
    outputs = [result]
    if isinstance(result, Mapping):
        outputs = list(result.values())
    elif isinstance(result, (tuple, list)):
        outputs = list(result)
    for y in outputs:
        if not isinstance(y, Variable):
            raise TypeError(
                f"export: expected Variables from the model, got {type(y).__name__}"
            )
    return outputs
