"""Graphs for batches of any size, from two graphs for batches of given sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

_MAX = numpy.iinfo(numpy.int64).max


def for_any_batch(one: Any, other: Any, name: str = "batch") -> Any:
    """``one`` with its batch axes called ``name``, for batches of any size.

    Args:
        one, other: graphs of the same model, whose inputs differ in the extent of the
            first axis only.

    Raises:
        NotImplementedError: a node depends on the size of the batch in another way
            than by the shape of a Reshape or the end of a Slice.
    """
    import onnx

    if _structure(one) != _structure(other):
        raise NotImplementedError(
            "export: expected the same operations for every size of the batch"
        )
    sizes = {each.name: each for each in other.graph.initializer}
    for i, constant in enumerate(one.graph.initializer):
        a = onnx.numpy_helper.to_array(constant)
        b = onnx.numpy_helper.to_array(sizes[constant.name])
        if a.shape != b.shape or not numpy.array_equal(a, b):
            free = _free(one.graph, constant.name, a, b)
            replacement = onnx.numpy_helper.from_array(free, constant.name)
            one.graph.initializer[i].CopyFrom(replacement)
    for a, b in zip(_values(one), _values(other)):
        for x, y in zip(a.type.tensor_type.shape.dim, b.type.tensor_type.shape.dim):
            if x.dim_value != y.dim_value:
                x.dim_param = name
    return one


def _structure(model: Any) -> list[Any]:
    return [
        (n.op_type, list(n.input), list(n.output), [str(a) for a in n.attribute])
        for n in model.graph.node
    ]


def _values(model: Any) -> Iterator[Any]:
    yield from model.graph.input
    yield from model.graph.output


def _free(graph: Any, name: str, a: numpy.ndarray, b: numpy.ndarray) -> numpy.ndarray:
    """The constant for any batch; ``a`` and ``b`` are those of two sizes."""
    users = [(n, list(n.input).index(name)) for n in graph.node if name in n.input]
    if a.shape == b.shape and a.dtype == numpy.int64:
        changed = a != b
        if all(_is_shape_of_reshape(node, at) for node, at in users):
            if changed.sum() == 1:  # Reshape computes one extent itself
                return numpy.where(changed, -1, a)
        elif all((node.op_type, at) == ("Slice", 2) for node, at in users):
            # Ends of slices that reach to the last example in both.
            if (b - a)[changed].tolist() == [1] * changed.sum():
                return numpy.where(changed, _MAX, a)
    node = users[0][0]
    raise NotImplementedError(
        f"export: {node.op_type} that makes {node.output[0]} depends on the size of "
        "the batch; reshape with -1 for its axis, or export without dynamic_batch"
    )


def _is_shape_of_reshape(node: Any, at: int) -> bool:
    return (node.op_type, at) == ("Reshape", 1)
