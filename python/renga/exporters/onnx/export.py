"""Models as ONNX graphs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy

from renga import configuration
from renga.exporters.onnx.batches import for_any_batch
from renga.exporters.onnx.recorder import Recorder
from renga.link import Link
from renga.serializers.atomic import atomic_write
from renga.variable import Variable, as_array

OPSET = 17

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

    The model, a link or a function, is run once in test mode on the given arrays
    and its operations are recorded: shapes are those of these arrays, and numbers read
    from arrays become constants. Parameters are named as in the link, with
    dots. With ``filename`` the graph is saved.

    >>> import numpy, renga.links as L
    >>> from renga.exporters.onnx import export
    >>> proto = export(L.Linear(4, 3), numpy.zeros((2, 4), numpy.float32))
    >>> [node.op_type for node in proto.graph.node]
    ['Gemm', 'Identity']

    Args:
        args: an array, a tuple or a list of arrays, or a dictionary of keywords.
        dynamic_batch: the first axis of every input is the batch, and the graph takes
            batches of any size. The model is run a second time, with one example more.

    Raises:
        NotImplementedError: an operation has no counterpart in ONNX, or depends on the
            size of the batch.
        ValueError: an input has no batch axis, or no example.
        ImportError: the package onnx is not installed.
    """
    import onnx

    proto = _graph_of(model, args, input_names, output_names)
    if dynamic_batch:
        larger = _graph_of(model, _one_more(args), input_names, output_names)
        proto = for_any_batch(proto, larger)
    onnx.checker.check_model(proto, full_check=True)
    if filename is not None:
        with atomic_write(filename) as file:
            file.write(proto.SerializeToString())
    return proto


def _one_more(args: Any) -> Any:
    """The inputs with their first example once more."""
    if isinstance(args, Mapping):
        return {name: _one_more(x) for name, x in args.items()}
    if isinstance(args, (tuple, list)):
        return [_one_more(x) for x in args]
    x = numpy.asarray(as_array(args))
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
    with configuration.using_config("train", False), recorder:
        if isinstance(args, Mapping):
            result = model(**dict(zip(args, inputs.values())))
        else:
            result = model(*inputs.values())
    outputs = _outputs(result)
    names = output_names
    if names is None:
        names = [f"output_{i}" for i in range(len(outputs))]
    if len(names) != len(outputs):
        raise ValueError(
            f"export: expected {len(outputs)} output_names, got {list(names)}"
        )
    graph = recorder.graph(type(model).__name__, dict(zip(names, outputs)))
    opset = [onnx.helper.make_opsetid("", OPSET)]
    proto = onnx.helper.make_model(graph, opset_imports=opset, producer_name="renga")
    proto.ir_version = 8  # the version of this operator set
    return proto


def _inputs(args: Any, names: Sequence[str] | None) -> dict[str, Variable]:
    if isinstance(args, Mapping):
        names = names or list(args)
        arrays = list(args.values())
    else:
        arrays = list(args) if isinstance(args, (tuple, list)) else [args]
        names = names or [f"input_{i}" for i in range(len(arrays))]
    if len(names) != len(arrays):
        raise ValueError(
            f"export: expected {len(arrays)} input_names, got {list(names)}"
        )
    variables = {}
    for name, array in zip(names, map(as_array, arrays)):
        # Requiring gradients marks all that depends on an input.
        floats = numpy.issubdtype(array.dtype, numpy.floating)
        variables[name] = Variable(array, requires_grad=floats)
    return variables


def _parameters(model: Any) -> dict[str, Any]:
    if not isinstance(model, Link):
        return {}
    return {
        path.strip("/").replace("/", "."): parameter
        for path, parameter in model.namedparams()
    }


def _outputs(result: Any) -> list[Variable]:
    if isinstance(result, Variable):
        return [result]
    if isinstance(result, Mapping):
        return list(result.values())
    return list(result)
