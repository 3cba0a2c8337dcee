"""Graphs in older versions of ONNX's operators."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy

from renga.exporters.onnx.comparison import constants_of

if TYPE_CHECKING:
    import onnx


def in_version(
    proto: onnx.ModelProto, version: int, given: Collection[str]
) -> onnx.ModelProto:
    """A copy of a graph with the operators of an older version.

    What has become an input of an operator since then is an attribute again,
    attributes that did not exist yet must have their default values, and some operators
    are composed of older ones. Nodes with the names ``given`` are of that version.

    Raises:
        NotImplementedError: an operator has no counterpart in that version.
    """
    import onnx

    old = type(proto)()
    old.CopyFrom(proto)
    _compose(old, version, given)
    constants = constants_of(old)
    (newest,) = (o.version for o in old.opset_import if o.domain == "")
    for node in old.graph.node:
        if node.domain == "" and node.name not in given:
            schemas = _schema(node, newest), _schema(node, version)
            if schemas[0].since_version != schemas[1].since_version:
                _downgrade(node, *schemas, constants, version)
    used = {name for node in old.graph.node for name in node.input}
    kept = [x for x in old.graph.initializer if x.name in used]
    del old.graph.initializer[:]
    old.graph.initializer.extend(kept)
    for opset in old.opset_import:
        if opset.domain == "":
            opset.version = version
    # From version 4 on, constants need not be inputs.
    oldest = onnx.helper.find_min_ir_version_for(old.opset_import, True)
    old.ir_version = max(4, oldest)
    return old


def _compose(proto: Any, version: int, given: Collection[str]) -> None:
    """Replaces operators that the version lacks by others."""
    import onnx

    graph, nodes = proto.graph, list(proto.graph.node)
    inferred = onnx.shape_inference.infer_shapes(proto).graph
    types = {
        x.name: x.type.tensor_type
        for x in (*inferred.input, *inferred.value_info, *inferred.output)
    }
    del graph.node[:]
    for node in nodes:
        since, compose = _COMPOSED.get(node.op_type, (0, None))
        if compose is None or version >= since or node.name in given:
            graph.node.append(node)
        else:
            options = {x.name: _attribute(x) for x in node.attribute}
            found = types.get(node.output[0])
            compose(_Composition(graph, node, found), *node.input, **options)


class _Composition:
    """Adds nodes to a graph; the last of them has the output of ``node``."""

    def __init__(self, graph: Any, node: Any, found: Any) -> None:
        self.operator, self.type = node.op_type, found
        self.rank = None if found is None else len(found.shape.dim)
        self._graph, self._name, self._stem = graph, node.output[0], node.name
        self._count = 0

    def __call__(
        self, op: str, *inputs: Any, last: bool = False, **attributes: Any
    ) -> str:
        """The output of a node; inputs are names or arrays."""
        import onnx

        names = [x if isinstance(x, str) else self._constant(x) for x in inputs]
        output = self._name if last else self._fresh_name()
        node = onnx.helper.make_node(op, names, [output], **attributes)
        node.name = self._stem if last else self._stem and output
        self._graph.node.append(node)
        return output

    def _constant(self, x: Any) -> str:
        import onnx

        tensor = onnx.numpy_helper.from_array(numpy.asarray(x), self._fresh_name())
        self._graph.initializer.append(tensor)
        return str(tensor.name)

    def _fresh_name(self) -> str:
        self._count += 1
        return f"{self._name}_part_{self._count}"


def _product(add: _Composition, a: str, b: str, *c: str, **options: Any) -> None:
    """Gemm with a bias, of 0 if it has none."""
    zero = numpy.zeros((), numpy.float32)
    add("Gemm", a, b, *(c or [zero]), last=True, **options)


def _softmax(add: _Composition, x: str, axis: int = -1) -> None:
    """Softmax and LogSoftmax, which took all axes from ``axis`` on for one."""
    if add.rank is not None and axis in (-1, add.rank - 1):
        add(add.operator, x, axis=add.rank - 1, last=True)
        return
    total = add("ReduceLogSumExp", x, numpy.array([axis]), keepdims=1)
    if add.operator == "Softmax":
        add("Exp", add("Sub", x, total), last=True)
    else:
        add("Sub", x, total, last=True)


def _expanded(add: _Composition, x: str, shape: str) -> None:
    """Expand to a shape that is known."""
    import onnx

    extents = [] if add.type is None else [d.dim_value for d in add.type.shape.dim]
    if not all(extents):
        raise NotImplementedError(
            "export: Expand to a shape that is computed has no counterpart in "
            "opset_version 7"
        )
    dtype = onnx.helper.tensor_dtype_to_np_dtype(add.type.elem_type)
    add("Mul", x, numpy.ones(extents, dtype), last=True)


def _picked(add: _Composition, x: str, column: str, axis: int) -> None:
    """GatherElements of one column for each row."""
    one_hot = _one_hot(add, x, column, -1)
    rows = add("Unsqueeze", x, numpy.array([1]))
    products = add("Mul", rows, one_hot)
    add("ReduceSum", products, numpy.array([2]), keepdims=0, last=True)


def _negative_log(
    add: _Composition, x: str, t: str, *weight: str, ignore_index: int, reduction: bytes
) -> None:
    """NegativeLogLikelihoodLoss of each sample."""
    label = add("Cast", t, to=_INT64)
    ignored = add("Equal", label, numpy.array(ignore_index, numpy.int64))
    label = add("Where", ignored, numpy.array(0, numpy.int64), label)
    products = add("Mul", x, _one_hot(add, x, label, 1))
    loss = add("Neg", add("ReduceSum", products, numpy.array([1]), keepdims=0))
    if weight:
        loss = add("Mul", loss, add("Gather", *weight, label))
    add("Where", ignored, numpy.array(0, numpy.float32), loss, last=True)


def _one_hot(add: _Composition, x: str, labels: str, axis: int) -> str:
    """1 at the label of ``x``'s axis 1, 0 elsewhere, along a new axis."""
    classes = add("Gather", add("Shape", x), numpy.array([1]))
    values = numpy.array([0, 1], numpy.float32)
    return add("OneHot", add("Cast", labels, to=_INT64), classes, values, axis=axis)


_INT64 = 7  # onnx.TensorProto.INT64
# The first version in which an operator is as it is today, and what it is before.
_COMPOSED: dict[str, tuple[int, Any]] = {
    "Expand": (8, _expanded),
    "LogSoftmax": (13, _softmax),
    "Softmax": (13, _softmax),
    "Gemm": (11, _product),
    "GatherElements": (11, _picked),
    "NegativeLogLikelihoodLoss": (12, _negative_log),
}


def _attribute(attribute: Any) -> Any:
    import onnx

    return onnx.helper.get_attribute_value(attribute)


def _schema(node: Any, version: int) -> Any:
    import onnx

    try:
        return onnx.defs.get_schema(node.op_type, version)
    except onnx.defs.SchemaError:
        raise _refused(node, version) from None


def _refused(node: Any, version: int, what: str = "") -> NotImplementedError:
    return NotImplementedError(
        f"export: {node.op_type}{what} has no counterpart in opset_version {version}"
    )


def _downgrade(
    node: Any, new: Any, old: Any, constants: dict[str, Any], version: int
) -> None:
    """Changes a node of the operator ``new`` to one of ``old``."""
    import onnx

    known = [x.name for x in old.inputs]
    variadic = new.inputs and new.inputs[-1].name in known and len(new.inputs) == 1
    names = [x.name for x in new.inputs]
    while not variadic and len(node.input) > len(known):
        name, given = names[len(node.input) - 1], node.input.pop()
        if not given:
            continue
        value = constants.get(given)
        # Pad's value is the one that has changed its name.
        attribute = {"constant_value": "value"}.get(name, name)
        if value is None or attribute not in old.attributes:
            neutral = {"steps": 1}.get(name, 0)
            if value is None or (value != neutral).any():
                raise _refused(node, version, f" with the input {name}")
            continue
        found = value.tolist() if value.ndim else value.item()
        node.attribute.append(onnx.helper.make_attribute(attribute, found))
    for attribute in list(node.attribute):
        if attribute.name in old.attributes:
            continue
        default = new.attributes[attribute.name].default_value
        if attribute.name == "allowzero" and node.input[1] in constants:
            # Without zeros in the shape it means nothing.
            needed = not constants[node.input[1]].all()
        else:
            needed = _attribute(attribute) != _value(default)
        if needed:
            raise _refused(node, version, f" with the attribute {attribute.name}")
        node.attribute.remove(attribute)


def _value(default: Any) -> Any:
    import onnx

    if default.type == onnx.AttributeProto.UNDEFINED:
        return None
    value = _attribute(default)
    return numpy.asarray(value).tolist() if isinstance(value, list) else value
