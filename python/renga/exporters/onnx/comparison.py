"""Parts of ONNX graphs, for comparisons of graphs of the same model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    import onnx


def structure_of(model: onnx.ModelProto) -> list[tuple[object, ...]]:
    """Operators, names and attributes of all nodes."""
    return [
        (n.op_type, list(n.input), list(n.output), [str(a) for a in n.attribute])
        for n in model.graph.node
    ]


def constants_of(model: onnx.ModelProto) -> dict[str, numpy.ndarray]:
    """The constants by name."""
    import onnx

    return {x.name: onnx.numpy_helper.to_array(x) for x in model.graph.initializer}


def first_user(graph: onnx.GraphProto, name: str) -> str:
    """The first node that has an input called ``name``, and what called it."""
    node = next(n for n in graph.node if name in n.input)
    return f"{node.op_type}{node.doc_string}"


def check_same(one: onnx.ModelProto, other: onnx.ModelProto) -> None:
    """Compares the graphs that two inputs of the same shape gave.

    Raises:
        NotImplementedError: operations or constants differ.
    """
    if structure_of(one) != structure_of(other):
        raise NotImplementedError(
            "export: expected the same operations for all values of the inputs"
        )
    others = constants_of(other)
    for name, value in constants_of(one).items():
        if not numpy.array_equal(value, others[name]):
            raise NotImplementedError(
                f"export: {first_user(one.graph, name)} has a constant that was read "
                "from an array and depends on the values of the inputs"
            )
