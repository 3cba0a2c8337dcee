"""Models as ONNX graphs, with the arguments and names of Chainer's exporter."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import IO, Any, Callable

import numpy

from renga.backends import cuda
from renga.chainer.function_classes.creators import seen_as_one
from renga.chainer.onnx_chainer.graph import (
    ARRAY,
    PARAMETER,
    FunctionConverterParams,
    NamedRecording,
)
from renga.chainer.onnx_chainer.onnx_helper import cleanse_param_name
from renga.core import configuration
from renga.core.backend import get_array_types
from renga.core.variable import Variable, as_array
from renga.exporters.onnx.batches import for_any_batch
from renga.exporters.onnx.comparison import constants_of, structure_of
from renga.exporters.onnx.recording import (
    OPSET,
    each,
    flat_outputs,
    named_inputs,
    run_model,
)
from renga.exporters.onnx.versions import in_version
from renga.utils.type_check import InvalidType

MINIMUM_OPSET_VERSION = 7
MAXIMUM_OPSET_VERSION = OPSET


def export(
    model: Callable[..., object],
    args: object,
    filename: str | IO[bytes] | None = None,
    export_params: bool = True,
    graph_name: str = "Graph",
    save_text: bool = False,
    opset_version: int | None = None,
    input_names: object = None,
    output_names: object = None,
    train: bool = False,
    return_named_inout: bool = False,
    external_converters: Mapping[str, Callable[..., object]] | None = None,
    external_opset_imports: Mapping[str, int] | None = None,
    input_shapes: object = None,
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
        no_testcase: whether there is no warning that ``filename`` is saved alone.

    Raises:
        RuntimeError: the model returns no Variable.
        NotImplementedError: an operation has no counterpart in ONNX, or not in that
            version, or a constant depends on an extent that may differ.
        ValueError: names or shapes do not fit the arguments.
    """
    import onnx

    if filename is not None and not no_testcase:
        warnings.warn(
            "export: export_testcase saves the inputs and outputs, too",
            DeprecationWarning,
            stacklevel=2,
        )
    keys = list(args) if isinstance(args, Mapping) else None
    shapes = None if input_shapes is None else _listed(input_shapes, keys, tuple)
    names = _listed(input_names, keys, str)
    arrays = _arrays_of(args)
    if shapes is not None:
        extents = [x.shape for x in arrays]
        if [len(shape) for shape in shapes] != [len(shape) for shape in extents]:
            raise ValueError(
                f"export: expected input_shapes of {extents}, got {shapes}"
            )
    converters = {**_CONVERTERS, **(external_converters or {})}
    recording = NamedRecording(
        model,
        args,
        [f"Input_{i}" for i in range(len(arrays))] if names is None else names,
        _listed(output_names, _keys_of_outputs(output_names), str),
        train,
    )
    recording.converters = converters
    recording.version, recording.given = opset_version or OPSET, set()
    with seen_as_one(converters):
        proto = recording.checked_graph()
        if shapes is not None:
            proto = _of_shapes(recording, proto, args, shapes)
    _finish(proto, model, graph_name, output_names is None)
    for domain, version in (external_opset_imports or {}).items():
        proto.opset_import.append(onnx.helper.make_opsetid(domain, version))
    proto = _in_version(proto, opset_version, recording.given)
    _place_constants(proto.graph, export_params)
    _check(proto, external_converters, external_opset_imports)
    _save(proto, filename, save_text)
    return (proto, *_named(model, args, proto, train)) if return_named_inout else proto


def convert_parameter(parameter: object, context: Any) -> Any:
    """An ``onnx.TensorProto`` of an array or a Variable, which the graph has, too.

    Converters call it with the ``context`` of their ``FunctionConverterParams``. The
    name of the tensor is that of the constant in the graph.

    Raises:
        ValueError: another type.
    """
    import onnx

    array: Any = as_array(parameter)
    if not isinstance(array, get_array_types()):
        raise ValueError(
            "convert_parameter: expected an array or a Variable, "
            f"got {type(parameter).__name__}"
        )
    array = cuda.to_cpu(array)
    return onnx.numpy_helper.from_array(array, context.get_name(array))


def _roi_pooling(params: FunctionConverterParams) -> Iterator[Any]:
    """ONNX computes the regions' cells itself, from regions that may be an input."""
    import onnx

    func, (x, *rois) = params.func, params.input_names
    warnings.warn(
        "export: MaxRoiPool of ONNX Runtime is another one where a region has negative "
        "values alone",
        stacklevel=2,
    )
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


def _arrays_of(args: Any) -> list[Any]:
    if isinstance(args, Mapping):
        return list(args.values())
    return list(args) if isinstance(args, (list, tuple)) else [args]


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


def _of_shapes(recording: Any, proto: Any, args: Any, shapes: Sequence[Any]) -> Any:
    """The graph for inputs of these shapes, in which names are any extents."""
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


def _finish(proto: Any, model: Any, graph_name: str, unnamed: bool) -> None:
    """Names the graph, its parameters, and its outputs after what computes them."""
    proto.graph.name = graph_name
    names = {}
    for path, param in getattr(model, "namedparams", lambda: [])():
        names[path.strip("/").replace("/", ".")] = cleanse_param_name(path)
        if not param.is_initialized:
            message = f"export: the parameter {path} has no shape and is not exported"
            warnings.warn(message, stacklevel=3)
    for node in proto.graph.node:
        node.ClearField("doc_string")
        node.input[:] = [names.get(name, name) for name in node.input]
    for tensor in proto.graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    _name_outputs(proto.graph, unnamed)


def _name_outputs(graph: Any, unnamed: bool) -> None:
    """Has nodes compute the outputs without an Identity, which old versions lack."""
    sources = {name: node for node in graph.node for name in node.output}
    outputs = {y.name: y for y in graph.output}
    new: dict[str, str] = {}
    for node in list(graph.node):
        (name, *_), (output, *_) = node.input or [""], node.output
        is_last = node.op_type == "Identity" and output in outputs
        if not is_last or name not in sources or name in {*outputs, *new}:
            continue
        graph.node.remove(node)
        new[name] = outputs[output].name = name if unnamed else output
    for node in graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]


def _place_constants(graph: Any, export_params: bool) -> None:
    """Makes nodes of constants of operators, and inputs of parameters without values.

    Parameters and arrays of the model are initializers.
    """
    import onnx

    nodes, kept = [], []
    for tensor in graph.initializer:
        name, is_parameter = tensor.name, PARAMETER in tensor.name
        if is_parameter and not export_params:
            kind, shape = tensor.data_type, list(tensor.dims)
            value = onnx.helper.make_tensor_value_info(name, kind, shape)
            graph.input.append(value)
        elif is_parameter or name.startswith(ARRAY):
            kept.append(tensor)
        else:
            node = onnx.helper.make_node("Constant", [], [name], name, value=tensor)
            nodes.append(node)
    nodes += graph.node
    for field, values in (("initializer", kept), ("node", nodes)):
        copies = [copy.deepcopy(value) for value in values]
        graph.ClearField(field)
        getattr(graph, field).extend(copies)


def _in_version(proto: Any, version: int | None, given: Collection[str]) -> Any:
    """The graph in another version of the operators, which ``given`` nodes have.

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
        return in_version(proto, version, given)
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
    inputs = proto.graph.input[: len(_arrays_of(args))]
    inputs = named_inputs(args, [x.name for x in inputs])
    mode = configuration.using_config("train", train)
    with mode, configuration.using_config("in_recomputing", True):
        outputs = flat_outputs(run_model(model, args, list(inputs.values())))
    return inputs, dict(zip([y.name for y in proto.graph.output], outputs))
