"""Graphs for batches of any size, from graphs for batches of three sizes."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from renga.exporters.onnx.comparison import constants_of, first_user, structure_of

if TYPE_CHECKING:
    import onnx

_MAX = numpy.iinfo(numpy.int64).max


def for_any_batch(
    graphs: Sequence[onnx.ModelProto], name: str = "batch"
) -> onnx.ModelProto:
    """The first of three graphs with its batch axes called ``name``, for any size.

    Args:
        graphs: of the same model, whose inputs differ in the extent of the first axis
            only: n, n + 1 and n + 2.

    Raises:
        NotImplementedError: a node depends on the size of the batch in another way
            than by integers or by the shape of a constant, which grow evenly.
    """
    model = graphs[0]
    if any(structure_of(each) != structure_of(model) for each in graphs[1:]):
        raise NotImplementedError(
            "export: expected the same operations for every size of the batch"
        )
    n = model.graph.input[0].type.tensor_type.shape.dim[0].dim_value
    writer = _BatchWriter(model.graph, n)
    for key, *values in _constants_of_all(graphs):
        shapes = {value.shape for value in values}
        if len(shapes) > 1 or any((value != values[0]).any() for value in values):
            writer.free(key, values)
    writer.finish()
    for a, b in zip(_values(graphs[0]), _values(graphs[1])):
        for x, y in zip(a.type.tensor_type.shape.dim, b.type.tensor_type.shape.dim):
            if x.dim_value == n and y.dim_value == n + 1:
                x.dim_param = name
            elif x.dim_value != y.dim_value:
                x.ClearField("dim_value")
    return model


def _constants_of_all(graphs: Sequence[Any]) -> Iterator[Any]:
    constants = [constants_of(each) for each in graphs]
    for key in constants[0]:
        yield key, *(each[key] for each in constants)


def _values(model: Any) -> Iterator[Any]:
    yield from model.graph.input
    yield from model.graph.output


class _BatchWriter:
    """Replaces constants that depend on the size of the batch by what computes them."""

    def __init__(self, graph: Any, n: int) -> None:
        self._graph = graph
        self._n = n
        self._nodes: list[Any] = []
        self._constants: dict[str, numpy.ndarray] = {}
        self._removed: set[str] = set()

    def free(self, name: str, values: list[numpy.ndarray]) -> None:
        """Makes a constant, given for three sizes, independent of the size."""
        first = values[0]
        shapes = [numpy.array(value.shape, numpy.int64) for value in values]
        if all(value.shape == first.shape for value in values):
            simple = self._simple(name, first, values[1])
            if simple is not None:
                self._constants[name] = simple
                self._removed.add(name)
            elif first.dtype == numpy.int64 and _grow_evenly(values):
                self._compute(name, values)
            else:
                self._refuse(name)
        elif (
            all(value.ndim == first.ndim for value in values)
            and _grow_evenly(shapes)
            and all(_is_repeated(value, shapes[1] != shapes[0]) for value in values)
        ):
            self._compute(f"{name}_shape", shapes)
            self._constants[f"{name}_value"] = _first(first, shapes[1] != shapes[0])
            self._node("Expand", [f"{name}_value", f"{name}_shape"], name)
            self._removed.add(name)
        else:
            self._refuse(name)

    def finish(self) -> None:
        """Puts the new nodes and constants into the graph."""
        import onnx

        kept = [x for x in self._graph.initializer if x.name not in self._removed]
        for name, value in self._constants.items():
            kept.append(onnx.numpy_helper.from_array(numpy.asarray(value), name))
        nodes = [*self._nodes, *self._graph.node]
        for field, values in (("initializer", kept), ("node", nodes)):
            copies = [copy.deepcopy(value) for value in values]
            self._graph.ClearField(field)
            getattr(self._graph, field).extend(copies)

    def _simple(
        self, name: str, a: numpy.ndarray, b: numpy.ndarray
    ) -> numpy.ndarray | None:
        """A constant for any batch, where the operator itself finds the extent."""
        if a.dtype != numpy.int64:
            return None
        uses = {
            (node.op_type, at)
            for node in self._graph.node
            for at, used in enumerate(node.input)
            if used == name
        }
        changed = a != b
        if uses == {("Reshape", 1)} and changed.sum() == 1:
            return numpy.where(changed, -1, a)
        if uses == {("Slice", 2)} and (b - a)[changed].tolist() == [1] * changed.sum():
            # Ends of slices that reach to the last example.
            return numpy.where(changed, _MAX, a)
        return None

    def _compute(self, name: str, values: Sequence[numpy.ndarray]) -> None:
        """Adds nodes that compute ``slope * size + offset``."""
        if not self._nodes:
            source = self._graph.input[0].name
            self._node("Shape", [source], "batch_size", start=0, end=1)
        slope = values[1] - values[0]
        self._constants[f"{name}_slope"] = slope
        self._constants[f"{name}_offset"] = values[0] - slope * self._n
        self._node("Mul", [f"{name}_slope", "batch_size"], f"{name}_scaled")
        self._node("Add", [f"{name}_scaled", f"{name}_offset"], name)
        self._removed.add(name)

    def _node(self, op: str, inputs: list[str], output: str, **attributes: Any) -> None:
        import onnx

        self._nodes.append(onnx.helper.make_node(op, inputs, [output], **attributes))

    def _refuse(self, name: str) -> None:
        raise NotImplementedError(
            f"export: {first_user(self._graph, name)} depends on the size of the "
            "batch; export without dynamic_batch"
        )


def _grow_evenly(values: Sequence[numpy.ndarray]) -> bool:
    a, b, c = values
    return a.ndim == 1 and numpy.array_equal(b - a, c - b)


def _first(x: numpy.ndarray, along: numpy.ndarray) -> numpy.ndarray:
    """The first element along the chosen axes, which are kept."""
    return x[tuple([slice(1) if chosen else slice(None) for chosen in along])]


def _is_repeated(x: numpy.ndarray, along: numpy.ndarray) -> bool:
    return x.size > 0 and bool((x == _first(x, along)).all())
