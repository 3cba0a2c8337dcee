"""How a model's links pass activations to each other, found by one forward pass."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from renga import _core
from renga._core import Locality
from renga.around_call import run_within, surrounding
from renga.configuration import using_config
from renga.link import Link
from renga.link_hook import LinkHook
from renga.operations import operation_of
from renga.parameter import Parameter
from renga.variable import Variable

# The layouts of an activation that is not replicated. Sequences (N, L, E) are sharded
# by features, which are the channels of a link that is called for each position.
SHARDED_LAYOUTS = ("channel", "batch", "features")


class Call(NamedTuple):
    """One call of a link."""

    link: Link
    x: Any  # the graph node of its input variable
    y: Any  # the graph node of its output variable
    x_shape: tuple[int, ...]
    y_shape: tuple[int, ...]
    has_one_argument: bool  # x and nothing else but n_batch_axes
    batch_axes: int = 1

    @property
    def pixels(self) -> int:
        """How many elements of x belong to one channel of a sample."""
        if not self.has_one_argument:
            return 1
        return math.prod(self.x_shape[self.batch_axes + 1 :])


class _Recorder(LinkHook):
    name = "placement trace"

    def __init__(self, kinds: tuple[type, ...]) -> None:
        self.kinds = kinds
        self.calls: list[Call] = []
        self.attended: list[Call] = []

    def forward_postprocess(self, args: Any) -> None:
        x = args.args[0] if args.args else None
        if type(args.link) not in self.kinds or not isinstance(args.out, Variable):
            return
        node = x.node if isinstance(x, Variable) else None
        has_one_argument = len(args.args) == 1 and set(args.kwargs) <= {"n_batch_axes"}
        shapes = getattr(x, "shape", ()), args.out.shape
        batch_axes = args.kwargs.get("n_batch_axes", 1)
        calls = self.calls if args.forward_name == "forward" else self.attended
        calls.append(
            Call(args.link, node, args.out.node, *shapes, has_one_argument, batch_axes)
        )


class _Unchanged:
    """Notes which Variables functions returned as they got them, as reshapes may.

    Such a call is in no graph; with a shard it would be another one. This is the
    handler around all calls while a model is traced.
    """

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self._inner: Any = None  # called next

    def __call__(self, call: Any) -> None:
        """Runs a call."""
        inputs = [x.node for x in call.operands]
        run_within(self._inner, call)
        # A cast to the same dtype returns any shard.
        if isinstance(call, _core.Call) and call.label != "cast":
            self.nodes += [y.node for y in call.results if y.node in inputs]

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        """A context in which calls are noted."""
        self._inner = _core.around_call()
        with surrounding(self):
            yield


class LayoutGroups:
    """Variable nodes in groups that must have one layout (a union-find structure)."""

    def __init__(self) -> None:
        self._parent: dict[Any, Any] = {}
        self._excluded: dict[Any, frozenset[str]] = {}

    def find(self, node: Any) -> Any:
        """The node that represents the group of a node."""
        root = node
        while self._parent.get(root, root) is not root:
            root = self._parent[root]
        return root

    def join(self, nodes: Sequence[Any]) -> None:
        """Puts nodes, with their groups, into one group."""
        first = self.find(nodes[0])
        for node in nodes[1:]:
            other = self.find(node)
            if other != first:
                self._parent[other] = first
                self.exclude(first, *self._excluded.pop(other, ()))

    def exclude(self, node: Any, *layouts: str) -> None:
        """Rules layouts out for the group of a node."""
        if node is not None:
            root = self.find(node)
            self._excluded[root] = self._excluded.get(root, frozenset()).union(layouts)

    def require_replicated(self, node: Any) -> None:
        """Rules all sharded layouts out for the group of a node."""
        self.exclude(node, *SHARDED_LAYOUTS)

    def choices(self, node: Any) -> list[str]:
        """The sharded layouts that are possible; none where it must be replicated."""
        if node is None:
            return []
        excluded = self._excluded.get(self.find(node), ())
        return [layout for layout in SHARDED_LAYOUTS if layout not in excluded]


class Trace(NamedTuple):
    """The calls of links in one forward pass, and the layouts between them."""

    calls: list[Call]
    groups: LayoutGroups
    attended: Sequence[Call] = ()  # calls of ``EmbedID.attend``
    leaves: Collection[Any] = ()  # nodes of parameters that functions use by themselves
    outputs: Sequence[Any] = ()  # nodes of what the model returned
    kept: Mapping[int, str] = {}  # by the ids of links, why no link replaces them


def trace(
    model: Link,
    inputs: Sequence[Any],
    kinds: tuple[type, ...],
    output: str = "replicated",
    follows_states: bool = False,
) -> Trace:
    """Runs the model once, in test mode.

    Args:
        kinds: classes of links whose inputs and outputs may be sharded.
        output: ``sharded`` if the outputs of the model may be sharded by channels or
            features, too.
        follows_states: whether to run it once more if links keep states between calls.
    """
    recorder, unchanged = _Recorder(kinds), _Unchanged()
    modes = using_config("train", False), using_config("enable_backprop", True)
    with recorder, unchanged.noting(), states_kept(model), modes[0], modes[1]:
        outputs = list(variables(model(*inputs)))
        if follows_states and any(_states(vars(link)) for link in model.links()):
            # The first step of a recurrent link calls less than those that follow.
            outputs += variables(model(*inputs))
    groups = LayoutGroups()
    calls, attended = recorder.calls, recorder.attended
    inside = _functions_inside([*calls, *attended])
    for y in outputs:
        # The caller of a model with sharded outputs has to know their axis.
        excluded = SHARDED_LAYOUTS if output == "replicated" else ("batch",)
        groups.exclude(y.node, *excluded)
    leaves: set[Any] = set()
    for function in _functions_before([y.node for y in outputs]):
        if function not in inside:
            _constrain(function, groups)
            leaves.update(x for x in function.inputs if x.creator_node is None)
    for call in calls:
        _constrain_call(call, calls, groups)
    for node in unchanged.nodes:
        groups.require_replicated(node)
    for call in attended:
        groups.require_replicated(call.x)
        groups.exclude(call.y, "channel", "batch")
    return Trace(calls, groups, attended, leaves, [y.node for y in outputs])


@contextlib.contextmanager
def states_kept(model: Link) -> Iterator[None]:
    """A context that leaves the Variables that links keep between calls as they are.

    Such are the states of recurrent links.
    """
    links = dict.fromkeys(model.links())
    before = [(vars(link), dict(vars(link))) for link in links]
    try:
        yield
    finally:
        for attributes, kept in before:
            for name in _states(attributes):
                attributes[name] = kept.get(name)


def _states(attributes: dict[str, Any]) -> list[str]:
    """The names of the Variables that a link keeps between calls."""
    return [
        name
        for name, value in attributes.items()
        if isinstance(value, Variable) and not isinstance(value, Parameter)
    ]


def _constrain_call(call: Call, calls: Sequence[Call], groups: LayoutGroups) -> None:
    """A link has one input layout and one output layout in all of its calls."""
    same_link = [other for other in calls if other.link is call.link]
    groups.join([other.y for other in same_link])
    if all(other.x is not None for other in same_link):
        groups.join([other.x for other in same_link])
    else:
        groups.require_replicated(call.x)
    if call.x is None or call.x.creator_node is None:
        groups.require_replicated(call.x)
    if not call.has_one_argument or len(call.y_shape) < 2:
        groups.require_replicated(call.x)
        groups.require_replicated(call.y)
    if call.x_shape[:1] != call.y_shape[:1]:
        groups.exclude(call.x, "batch")
        groups.exclude(call.y, "batch")
    others = ["channel", "batch"] if call.batch_axes > 1 else ["features"]
    groups.exclude(call.x, *others)
    groups.exclude(call.y, *others)
    if len(call.x_shape) != call.batch_axes + 1:
        groups.exclude(call.x, "features")


def _constrain(function: Any, groups: LayoutGroups) -> None:
    """A function outside of the links keeps a sharded layout, or excludes it."""
    ys = [y for y in (reference() for reference in function.outputs) if y is not None]
    # Scalars are the same on every rank.
    xs = [x for x in function.inputs if len(x.shape) > 0 and set(x.shape) != {1}]
    nodes = [*xs, *ys]
    are_computed = all(x.creator_node is not None for x in xs)
    possible = []
    for layout, axis in _kept_layouts(function):
        is_aligned = all(
            len(v.shape) == len(ys[0].shape) > 1 and v.shape[axis] == ys[0].shape[axis]
            for v in nodes
        )
        if are_computed and is_aligned:
            possible.append(layout)
    if possible:
        groups.join(nodes)
    for node in nodes:
        groups.exclude(node, *(a for a in SHARDED_LAYOUTS if a not in possible))


def _kept_layouts(function: Any) -> list[tuple[str, int]]:
    """The layouts that the result has if all inputs have them, with their axes."""
    operation = operation_of(function)
    # Parameters are the same on every rank, and arrays are not in the graph.
    if operation is None or operation.inputs is not None or operation.takes_arrays:
        return []
    channel = [("channel", 1)] if operation.is_channelwise else []
    batch = [("batch", 0)] if operation.is_batchwise else []
    is_pointwise = operation.locality == Locality.pointwise
    return channel + batch + ([("features", -1)] if is_pointwise else [])


def _functions_before(nodes: Iterable[Any], until: Any = None) -> list[Any]:
    """The functions that nodes depend on, without those that ``until`` depends on."""
    found: dict[Any, None] = {}
    pending = list(nodes)
    while pending:
        node = pending.pop()
        function = None if node == until else node.creator_node
        if function is not None and function not in found:
            found[function] = None
            pending += function.inputs
    return list(found)


def _functions_inside(calls: Sequence[Call]) -> set[Any]:
    return {f for call in calls for f in _functions_before([call.y], call.x)}


def variables(value: Any) -> Iterator[Variable]:
    """The Variables among what a model has returned."""
    if isinstance(value, Variable):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from variables(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from variables(item)
