"""How a model's links hand activations to each other, seen in one forward pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from renga.configuration import using_config
from renga.link import Link
from renga.link_hook import LinkHook
from renga.operation_cost import operation_name
from renga.variable import Variable

# Operations that compute each channel, the second axis, from the same channel alone.
CHANNEL_WISE = frozenset(
    """absolute add average_pooling_2d batch_normalization cast ceil clip cosine
    divide dropout elu exp expm1 fixed_batch_normalization floor leaky_relu log log1p
    max_pooling_2d maximum minimum multiply negative power relu rsqrt sigmoid sign
    softplus sqrt square subtract tanh""".split()
)
# Operations that compute each sample, the first axis, from the same sample alone.
SAMPLE_WISE = CHANNEL_WISE - {"batch_normalization", "fixed_batch_normalization"}


SHARED = ("channel", "batch")  # the layouts of what is not whole on every rank


class Call(NamedTuple):
    """One call of a link."""

    link: Link
    x: Any  # the vertex of its input
    y: Any  # the vertex of its output
    x_shape: tuple[int, ...]
    y_shape: tuple[int, ...]
    plain: bool  # whether nothing but x was given


class _Recorder(LinkHook):
    name = "channel-parallel trace"

    def __init__(self, kinds: tuple[type, ...]) -> None:
        self.kinds = kinds
        self.calls: list[Call] = []

    def forward_postprocess(self, args: Any) -> None:
        x = args.args[0] if args.args else None
        if type(args.link) not in self.kinds or not isinstance(args.out, Variable):
            return
        vertex = x.node if isinstance(x, Variable) else None
        plain = len(args.args) == 1 and not args.kwargs
        shapes = getattr(x, "shape", ()), args.out.shape
        self.calls.append(Call(args.link, vertex, args.out.node, *shapes, plain))


class Classes:
    """Vertices that have to lie on the ranks in the same way (union by joining)."""

    def __init__(self) -> None:
        self._parent: dict[Any, Any] = {}
        self._excluded: dict[Any, frozenset[str]] = {}

    def find(self, vertex: Any) -> Any:
        """What stands for all that lie like a vertex."""
        root = vertex
        while self._parent.get(root, root) is not root:
            root = self._parent[root]
        return root

    def join(self, vertices: Sequence[Any]) -> None:
        """They lie alike."""
        first = self.find(vertices[0])
        for vertex in vertices[1:]:
            other = self.find(vertex)
            if other != first:
                self._parent[other] = first
                self.exclude(first, *self._excluded.pop(other, ()))

    def exclude(self, vertex: Any, *layouts: str) -> None:
        """It cannot lie so."""
        if vertex is not None:
            root = self.find(vertex)
            self._excluded[root] = self._excluded.get(root, frozenset()).union(layouts)

    def keep_whole(self, vertex: Any) -> None:
        """It has to be whole on every rank."""
        self.exclude(vertex, *SHARED)

    def choices(self, vertex: Any) -> list[str]:
        """How it may be shared out; not at all where it has to be whole."""
        if vertex is None:
            return []
        excluded = self._excluded.get(self.find(vertex), ())
        return [layout for layout in SHARED if layout not in excluded]


class Trace(NamedTuple):
    """What was seen."""

    calls: list[Call]
    classes: Classes


def trace(model: Link, inputs: Sequence[Any], kinds: tuple[type, ...]) -> Trace:
    """Runs the model once, in test mode, and sees what depends on what.

    Args:
        kinds: the links whose inputs and outputs need not be whole.
    """
    recorder = _Recorder(kinds)
    with recorder, using_config("train", False), using_config("enable_backprop", True):
        outputs = list(_variables(model(*inputs)))  # type: ignore[operator]
    classes = Classes()
    calls = recorder.calls
    inside = _nodes_inside(calls)
    for y in outputs:
        classes.keep_whole(y.node)
    for node in _nodes_before([y.node for y in outputs]):
        if node not in inside:
            _constrain(node, classes)
    for call in calls:
        alike = [other for other in calls if other.link is call.link]
        classes.join([other.y for other in alike])
        if all(other.x is not None for other in alike):
            classes.join([other.x for other in alike])
        else:
            classes.keep_whole(call.x)
        if call.x is None or call.x.creator_node is None:
            classes.keep_whole(call.x)
        if not call.plain or len(call.y_shape) < 2:
            classes.keep_whole(call.x)
            classes.keep_whole(call.y)
        if call.x_shape[:1] != call.y_shape[:1]:
            classes.exclude(call.x, "batch")
            classes.exclude(call.y, "batch")
    return Trace(calls, classes)


def _constrain(node: Any, classes: Classes) -> None:
    """What one operation outside of the links says about how its variables lie."""
    ys = [y for y in (reference() for reference in node.outputs) if y is not None]
    xs = [x for x in node.inputs if len(x.shape) > 0 and set(x.shape) != {1}]
    everything, name = [*xs, *ys], operation_name(node)
    computed = all(x.creator_node is not None for x in xs)
    possible = []
    for layout, axis, operations in (
        ("channel", 1, CHANNEL_WISE),
        ("batch", 0, SAMPLE_WISE),
    ):
        alike = all(
            len(v.shape) == len(ys[0].shape) > 1 and v.shape[axis] == ys[0].shape[axis]
            for v in everything
        )
        if computed and alike and name in operations:
            possible.append(layout)
    if possible:
        classes.join(everything)
    for vertex in everything:
        classes.exclude(vertex, *(a for a in SHARED if a not in possible))


def _nodes_before(vertices: Iterable[Any], until: Any = None) -> list[Any]:
    """The operations that lead to some vertices, but not beyond ``until``."""
    found: dict[Any, None] = {}
    open_vertices = list(vertices)
    while open_vertices:
        vertex = open_vertices.pop()
        node = None if vertex == until else vertex.creator_node
        if node is not None and node not in found:
            found[node] = None
            open_vertices += node.inputs
    return list(found)


def _nodes_inside(calls: Sequence[Call]) -> set[Any]:
    return {node for call in calls for node in _nodes_before([call.y], call.x)}


def _variables(value: Any) -> Iterator[Variable]:
    if isinstance(value, Variable):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _variables(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _variables(item)
