"""Graphs in older versions of ONNX's operators."""

from __future__ import annotations

from typing import Any

import numpy

from renga.exporters.onnx.comparison import constants_of


def in_version(proto: Any, version: int) -> Any:
    """A copy of a graph with the operators of an older version.

    What has become an input of an operator since then is an attribute again, and
    attributes that did not exist yet must have their default values.

    Raises:
        NotImplementedError: an operator has no counterpart in that version.
    """
    import onnx

    old = type(proto)()
    old.CopyFrom(proto)
    constants = constants_of(old)
    (newest,) = (o.version for o in old.opset_import if o.domain == "")
    for node in old.graph.node:
        if node.domain == "":
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
            needed = onnx.helper.get_attribute_value(attribute) != _value(default)
        if needed:
            raise _refused(node, version, f" with the attribute {attribute.name}")
        node.attribute.remove(attribute)


def _value(default: Any) -> Any:
    import onnx

    if default.type == onnx.AttributeProto.UNDEFINED:
        return None
    value = onnx.helper.get_attribute_value(default)
    return numpy.asarray(value).tolist() if isinstance(value, list) else value
