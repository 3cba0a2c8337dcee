"""``onnx_chainer``: models as ONNX graphs, by the exporter of renga."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable, NamedTuple

import numpy

from renga.chainer.function_classes.creators import name_of_call, seen_as_one
from renga.core import configuration
from renga.core.variable import Variable
from renga.exporters.onnx.batches import for_any_batch
from renga.exporters.onnx.comparison import constants_of, structure_of
from renga.exporters.onnx.recording import (
    OPSET,
    Recording,
    each,
    named_inputs,
    outputs_of,
    run_model,
)
from renga.exporters.onnx.registry import Writer, WriterOf
from renga.exporters.onnx.versions import in_version
from renga.program import Call, Value
from renga.utils.type_check import InvalidType

MINIMUM_OPSET_VERSION = 7
MAXIMUM_OPSET_VERSION = OPSET


class FunctionConverterParams(NamedTuple):
    """What a converter gets: a function, the names of its inputs and outputs."""

    func: Any
    opset_version: int
    input_names: list[str]
    output_names: list[str]
    context: Any


def export(
    model: Callable[..., object],
    args: Any,
    filename: Any = None,
    export_params: bool = True,
    graph_name: str = "Graph",
    save_text: bool = False,
    opset_version: int | None = None,
    input_names: Any = None,
    output_names: Any = None,
    train: bool = False,
    return_named_inout: bool = False,
    external_converters: Mapping[str, Callable[..., Any]] | None = None,
    external_opset_imports: Mapping[str, int] | None = None,
    input_shapes: Any = None,
    no_testcase: bool = False,
) -> Any:
    """The graph that ``model(*args)`` computes, as an ``onnx.ModelProto``.

    Args:
        model: a link.
        args: an array or a Variable, a list or a dictionary of them.
        filename: a path or a file in which the graph is saved.
        export_params: whether parameters have values; else they are inputs.
        save_text: whether a path with ``.txt`` gets the graph as text.
        opset_version: the version of ONNX's operators.
        input_names, output_names: a name, a list, or a dictionary by the model's keys.
        train: whether the graph is that of training.
        return_named_inout: whether the result is (graph, inputs, outputs).
        external_converters: functions of ``FunctionConverterParams`` that return ONNX
            nodes, by the names of Chainer's classes of functions.
        external_opset_imports: versions of further operator sets, by their domains.
        input_shapes: shapes as the arguments have them, with names for extents that
            may differ from those of the arguments.

    Raises:
        NotImplementedError: an operation has no counterpart in ONNX, or not in that
            version, or a constant depends on an extent that may differ.
        ValueError: names or shapes do not fit the arguments.
    """
    import onnx

    keys = list(args) if isinstance(args, Mapping) else None
    shapes = None if input_shapes is None else _listed(input_shapes, keys, tuple)
    names = _listed(input_names, keys, str)
    count = len(args) if isinstance(args, (list, tuple, Mapping)) else 1
    converters = {**_CONVERTERS, **(external_converters or {})}
    recording = Recording(
        model,
        args,
        [f"Input_{i}" for i in range(count)] if names is None else names,
        _listed(output_names, _keys_of_outputs(output_names), str),
        train,
        _writer_of(converters, opset_version or OPSET),
    )
    with seen_as_one(converters):
        proto = recording.checked_graph()
        if shapes is not None:
            proto = _of_shapes(recording, proto, args, shapes)
    _finish(proto, model, graph_name, export_params)
    for domain, version in (external_opset_imports or {}).items():
        proto.opset_import.append(onnx.helper.make_opsetid(domain, version))
    proto = _in_version(proto, opset_version)
    _check(proto, external_converters, external_opset_imports)
    _save(proto, filename, save_text)
    return (proto, *_named(model, args, proto, train)) if return_named_inout else proto


def _roi_pooling(params: FunctionConverterParams) -> Iterator[Any]:
    """ONNX computes the regions' cells itself, from regions that may be an input."""
    import onnx

    func, (x, *rois) = params.func, params.input_names
    yield onnx.helper.make_node(
        "MaxRoiPool",
        [x, *(rois or [params.context.name_of(func.rois)])],
        params.output_names,
        pooled_shape=[func.outh, func.outw],
        spatial_scale=float(func.spatial_scale),
    )


# These converters are for functions whose operations in the core have no counterpart in
# ONNX.
_CONVERTERS = {"ROIPooling2D": _roi_pooling}


def export_testcase(
    model: Any, args: Any, out_dir: str, output_grad: bool = False, **kwargs: Any
) -> None:
    """Saves ``model.onnx`` and, in ``test_data_set_0``, its inputs and outputs.

    With ``output_grad`` the gradients of the parameters are saved, too, for gradients
    of 1 of the outputs. Keywords are those of ``export``.
    """
    folder = os.path.join(out_dir, "test_data_set_0")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(out_dir, "model.onnx")
    model.cleargrads()
    _, inputs, outputs = export(
        model, args, path, return_named_inout=True, no_testcase=True, **kwargs
    )
    for kind, values in (("input", inputs), ("output", outputs)):
        for i, (name, x) in enumerate(values.items()):
            _write_tensor(os.path.join(folder, f"{kind}_{i}.pb"), name, x.array)
    if not output_grad:
        return
    for y in outputs.values():
        y.grad = numpy.ones_like(y.array)
        y.backward(retain_grad=True)
    for i, (path, param) in enumerate(model.namedparams()):
        if param.grad is None:
            warnings.warn(f"export_testcase: {path} has no gradient", stacklevel=2)
            continue
        file = os.path.join(folder, f"gradient_{i}.pb")
        _write_tensor(file, _name_of_parameter(path), param.grad)


def _listed(given: Any, keys: list[Any] | None, single: type) -> list[Any] | None:
    """Names or shapes in the order of what they are for."""
    if given is None:
        return None
    if isinstance(given, single):
        return [given]
    if isinstance(given, Mapping):
        if keys is None or set(keys) != set(given):
            raise ValueError(f"export: expected names or shapes of {keys}, got {given}")
        return [given[key] for key in keys]
    return list(given)


def _keys_of_outputs(names: Any) -> list[Any] | None:
    return list(names) if isinstance(names, Mapping) else None


def _writer_of(converters: Mapping[str, Callable[..., Any]], version: int) -> WriterOf:
    """Writers that call the converters of Chainer's classes of functions."""

    def writer_of(call: Call) -> Writer | None:
        converter = converters.get(name_of_call(call))
        if converter is None:
            return None

        def write(graph: Any, results: Any, *arguments: object) -> list[str]:
            inputs = [graph.name_of(x) for x in arguments if isinstance(x, Value)]
            outputs = [graph.fresh_name("external") for _ in results]
            given = (call.node or call, version, inputs, outputs, graph)
            for node in converter(FunctionConverterParams(*given)):
                graph.add_node(node)
            return outputs

        return write

    return writer_of


def _of_shapes(recording: Any, proto: Any, args: Any, shapes: Sequence[Any]) -> Any:
    """The graph for inputs of these shapes, in which names are any extents."""
    inputs = proto.graph.input
    extents = [[d.dim_value for d in x.type.tensor_type.shape.dim] for x in inputs]
    if [len(shape) for shape in shapes] != [len(shape) for shape in extents]:
        raise ValueError(f"export: expected input_shapes of {extents}, got {shapes}")
    free = [[i for i, n in enumerate(s) if not isinstance(n, int)] for s in shapes]
    if any(free):
        larger = _enlarged(args, free)
        try:
            graphs = [proto, recording.graph(larger)]
        except InvalidType as error:
            raise NotImplementedError(
                f"export: expected a model for any extents of {shapes}, got one that "
                f"depends on them: {error}"
            ) from error
        if all(axes == [0] for axes in free):
            graphs.append(recording.graph(_enlarged(larger, free)))
            return for_any_batch(graphs, str(shapes[0][0]))
        if not _alike(*graphs):
            raise NotImplementedError(
                f"export: expected a graph that holds for any extents of {shapes}, got "
                "one with constants or operations that depend on them"
            )
    for x, shape in zip(proto.graph.input, shapes):
        for dim, n in zip(x.type.tensor_type.shape.dim, shape):
            dim.Clear()
            if isinstance(n, int):
                dim.dim_value = n
            elif n is not None:
                dim.dim_param = str(n)
    return _with_inferred_outputs(proto)


def _enlarged(args: Any, free: Sequence[Sequence[int]]) -> Any:
    """The inputs with the last element of their free axes once more."""
    axes = iter(free)

    def enlarged(x: numpy.ndarray) -> numpy.ndarray:
        for axis in next(axes):
            x = numpy.concatenate([x, x.take([-1], axis)], axis)
        return x

    return each(args, enlarged)


def _alike(one: Any, other: Any) -> bool:
    """Whether two graphs have the same operations and constants."""
    constants, others = constants_of(one), constants_of(other)
    return (
        structure_of(one) == structure_of(other)
        and constants.keys() == others.keys()
        and all(numpy.array_equal(x, others[key]) for key, x in constants.items())
    )


def _with_inferred_outputs(proto: Any) -> Any:
    import onnx

    for y in proto.graph.output:
        for dim in y.type.tensor_type.shape.dim:
            dim.Clear()
    return onnx.shape_inference.infer_shapes(proto)


def _name_of_parameter(path: str) -> str:
    return "param" + path.replace("/", "_")


def _finish(proto: Any, model: Any, graph_name: str, export_params: bool) -> None:
    """Names the graph and its parameters; without values these are inputs."""
    import onnx

    proto.graph.name = graph_name
    paths = [path for path, _ in getattr(model, "namedparams", lambda: [])()]
    names = {
        path.strip("/").replace("/", "."): _name_of_parameter(path) for path in paths
    }
    for node in proto.graph.node:
        node.ClearField("doc_string")
        node.input[:] = [names.get(name, name) for name in node.input]
    _rename_outputs(proto.graph)
    for tensor in list(proto.graph.initializer):
        if tensor.name not in names:
            continue
        tensor.name = names[tensor.name]
        if not export_params:
            kind, shape = tensor.data_type, list(tensor.dims)
            value = onnx.helper.make_tensor_value_info(tensor.name, kind, shape)
            proto.graph.input.append(value)
            proto.graph.initializer.remove(tensor)


def _rename_outputs(graph: Any) -> None:
    """Has nodes that compute outputs write them: old versions have no Identity."""
    inputs = [name for node in graph.node for name in node.input]
    for node in list(graph.node):
        (name, *_), (output, *_) = node.input, node.output
        sources = [n for n in graph.node if name in n.output]
        if node.op_type == "Identity" and sources and inputs.count(name) == 1:
            (source,) = sources
            source.output[:] = [output if y == name else y for y in source.output]
            graph.node.remove(node)


def _in_version(proto: Any, version: int | None) -> Any:
    """The graph in another version of the operators.

    Raises:
        NotImplementedError: an operator has no counterpart there.
    """
    import onnx

    if version is None or version == OPSET:
        return proto
    if not MINIMUM_OPSET_VERSION <= version <= MAXIMUM_OPSET_VERSION:
        warnings.warn(
            f"export: expected an opset_version of {MINIMUM_OPSET_VERSION} to "
            f"{MAXIMUM_OPSET_VERSION}, got {version}, which is not tested",
            stacklevel=3,
        )
    if version < OPSET:
        return in_version(proto, version)
    return onnx.version_converter.convert_version(proto, version)


def _check(proto: Any, converters: Any, imports: Any) -> None:
    import onnx

    try:
        onnx.checker.check_model(proto)
    except onnx.checker.ValidationError as error:
        if not converters or imports:
            raise
        message = f"export: the nodes of external_converters are not checked: {error}"
        warnings.warn(message, stacklevel=3)


def _save(proto: Any, filename: Any, save_text: bool) -> None:
    if filename is None:
        return
    if hasattr(filename, "write"):
        filename.write(proto.SerializeToString())
        return
    with open(filename, "wb") as file:
        file.write(proto.SerializeToString())
    if save_text:
        with open(f"{filename}.txt", "w", encoding="utf-8") as text:
            print(proto, file=text)


def _named(
    model: Any, args: Any, proto: Any, train: bool
) -> tuple[dict[str, Variable], dict[str, Variable]]:
    """The inputs and outputs by their names in the graph."""
    count = len(args) if isinstance(args, (list, tuple, Mapping)) else 1
    inputs = named_inputs(args, [x.name for x in proto.graph.input[:count]])
    mode = configuration.using_config("train", train)
    with mode, configuration.using_config("in_recomputing", True):
        outputs = outputs_of(run_model(model, args, list(inputs.values())))
    return inputs, dict(zip([y.name for y in proto.graph.output], outputs))


def _write_tensor(path: str, name: str, array: numpy.ndarray) -> None:
    import onnx

    with open(path, "wb") as file:
        file.write(onnx.numpy_helper.from_array(array, name).SerializeToString())
