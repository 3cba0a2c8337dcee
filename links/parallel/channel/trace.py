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
        self._whole: set[Any] = set()

    def find(self, vertex: Any) -> Any:
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
                if other in self._whole:
                    self._whole.add(first)

    def keep_whole(self, vertex: Any) -> None:
        """It has to be whole on every rank."""
        if vertex is not None:
            self._whole.add(self.find(vertex))

    def is_whole(self, vertex: Any) -> bool:
        """Whether it, or what lies like it, has to be whole."""
        return vertex is None or self.find(vertex) in self._whole


class Trace(NamedTuple):
    """What was seen."""

    calls: list[Call]
    classes: Classes

    def layouts(self, link: Link) -> tuple[str, str]:
        """How the inputs and outputs of a link may lie."""
        calls = [call for call in self.calls if call.link is link]
        x_whole = any(self.classes.is_whole(call.x) for call in calls)
        y_whole = any(self.classes.is_whole(call.y) for call in calls)
        return _name(x_whole or not calls), _name(y_whole or not calls)


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
        if call.x is None or call.x.creator_node is None:
            classes.keep_whole(call.x)
        if not call.plain or len(call.y_shape) < 2:
            classes.keep_whole(call.x)
            classes.keep_whole(call.y)
    return Trace(calls, classes)


def _constrain(node: Any, classes: Classes) -> None:
    """What one operation outside of the links says about how its variables lie."""
    ys = [y for y in (reference() for reference in node.outputs) if y is not None]
    xs = [x for x in node.inputs if len(x.shape) > 0 and set(x.shape) != {1}]
    everything = [*xs, *ys]
    channel_wise = operation_name(node) in CHANNEL_WISE and all(
        len(v.shape) == len(ys[0].shape) > 1 and v.shape[1] == ys[0].shape[1]
        for v in everything
    )
    if channel_wise and all(x.creator_node is not None for x in xs):
        classes.join(everything)
        return
    for vertex in everything:
        classes.keep_whole(vertex)


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


def _name(whole: bool) -> str:
    return "replicated" if whole else "channel"
