"""How a model's links pass activations to each other, found by one forward pass."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from renga import _core
from renga.core.around_call import variables_in
from renga.core.configuration import using_config
from renga.core.link import Link
from renga.core.link.traces import without_traces
from renga.core.variable import Variable
from renga.functions.util.link_states import is_state
from renga.program import Call, LinkCall, Program, Recorder, Value

# The layouts of an activation that is not replicated. Sequences (N, L, E) are sharded
# by features, which are the channels of a link that is called for each position.
SHARDED_LAYOUTS = ("channel", "batch", "features")


class CalledLink(NamedTuple):
    """One call of a link."""

    link: Link
    x: Value | None  # its input; None for an array
    y: Value
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


class LayoutGroups:
    """Values in groups that must have one layout (a union-find structure)."""

    def __init__(self) -> None:
        self._parent: dict[Hashable, Hashable] = {}
        self._excluded: dict[Hashable, frozenset[str]] = {}

    def find(self, value: Hashable) -> Hashable:
        """The value that represents the group of a value."""
        root = value
        while self._parent.get(root, root) is not root:
            root = self._parent[root]
        return root

    def join(self, values: Sequence[Hashable]) -> None:
        """Puts values, with their groups, into one group."""
        first = self.find(values[0])
        for value in values[1:]:
            other = self.find(value)
            if other != first:
                self._parent[other] = first
                self.exclude(first, *self._excluded.pop(other, ()))

    def exclude(self, value: Hashable, *layouts: str) -> None:
        """Rules layouts out for the group of a value."""
        if value is not None:
            root = self.find(value)
            self._excluded[root] = self._excluded.get(root, frozenset()).union(layouts)

    def require_replicated(self, value: Hashable) -> None:
        """Rules all sharded layouts out for the group of a value."""
        self.exclude(value, *SHARDED_LAYOUTS)

    def choices(self, value: Hashable) -> list[str]:
        """The sharded layouts that are possible; none where it must be replicated."""
        if value is None:
            return []
        excluded = self._excluded.get(self.find(value), ())
        return [layout for layout in SHARDED_LAYOUTS if layout not in excluded]


class Trace(NamedTuple):
    """The calls of links in one forward pass, and the layouts between them."""

    calls: list[CalledLink]
    groups: LayoutGroups
    attended: Sequence[CalledLink] = ()  # calls of ``EmbedID.attend``
    leaves: Collection[int] = ()  # ids of parameters that functions use themselves
    # The keys are what the model returned, the values are the labels of the functions
    # that computed it.
    outputs: Mapping[Value, str] = {}
    kept: Mapping[int, str] = {}  # by the ids of links, why no link replaces them


def trace(
    model: Link,
    inputs: Sequence[object],
    kinds: tuple[type, ...],
    output: str = "replicated",
    follows_states: bool = False,
) -> Trace:
    """Runs the model once, in test mode; without ``inputs`` nothing is known.

    Args:
        kinds: classes of links whose inputs and outputs may be sharded.
        output: ``sharded`` if the outputs of the model may be sharded by channels or
            features, too.
        follows_states: whether to run it once more if links keep states between calls.
    """
    if not inputs:
        return Trace([], LayoutGroups())
    recorder = Recorder(model)
    program = recorder.program
    modes = using_config("train", False), using_config("enable_backprop", True)
    with recorder, without_traces(model), modes[0], modes[1]:
        ys = variables_in(model(*inputs))
        values = [value for link in model.links() for value in vars(link).values()]
        if follows_states and any(map(is_state, values)):
            # The first step of a recurrent link calls less than those that follow.
            ys += variables_in(model(*inputs))
    outputs = {
        recorder.with_values(y): y.creator_node.label if y.creator_node else "the input"
        for y in ys
    }
    groups = LayoutGroups()
    found = [
        call
        for call in program.links
        if type(call.link) in kinds and isinstance(call.result, Value)
    ]
    calls = [_call_of(call) for call in found if call.method == "forward"]
    attended = [_call_of(call) for call in found if call.method != "forward"]
    for y in outputs:
        # The caller of a model with sharded outputs has to know their axis.
        excluded = SHARDED_LAYOUTS if output == "replicated" else ("batch",)
        groups.exclude(y, *excluded)
    inside = {i for call in found for i in call.calls}
    # A link may get what no output depends on, as its result is read in Python.
    given = [call.x for call in calls if call.x is not None]
    leaves: set[int] = set()
    for function in _calls_outside(program, [*outputs, *given], inside):
        _constrain(function, groups)
        leaves.update(id(x.variable) for x in function.operands)
    for call in calls:
        _constrain_call(call, calls, groups)
    for function in program.calls:
        if function.node is None and function.operation != "cast":
            # With a shard it would be another call. A cast returns any shard.
            for y in set(function.results).intersection(function.operands):
                groups.require_replicated(y)
    for call in attended:
        groups.require_replicated(call.x)
        groups.exclude(call.y, "channel", "batch")
    return Trace(calls, groups, attended, leaves, outputs)


def _call_of(call: LinkCall) -> CalledLink:
    x = call.args[0] if call.args and isinstance(call.args[0], Value) else None
    return CalledLink(
        call.link,
        x,
        call.result,
        getattr(call.args[0] if call.args else None, "shape", ()),
        call.result.shape,
        len(call.args) == 1 and set(call.kwargs) <= {"n_batch_axes"},
        call.kwargs.get("n_batch_axes", 1),
    )


def _calls_outside(
    program: Program, values: Iterable[Value], inside: Collection[int]
) -> list[Call]:
    """The calls that values depend on, without those inside of links."""
    needed, found = set(values), []
    for i, call in reversed(list(enumerate(program.calls))):
        if not needed.isdisjoint(call.results):
            needed.update(call.operands)
            if i not in inside:
                found.append(call)
    return found


def _constrain_call(
    call: CalledLink, calls: Sequence[CalledLink], groups: LayoutGroups
) -> None:
    """A link has one input layout and one output layout in all of its calls."""
    same_link = [other for other in calls if other.link is call.link]
    groups.join([other.y for other in same_link])
    if all(other.x is not None for other in same_link):
        groups.join([other.x for other in same_link])
    else:
        groups.require_replicated(call.x)
    if call.x is None or not call.x.is_inner:
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


def _constrain(function: Call, groups: LayoutGroups) -> None:
    """A function outside of the links keeps a sharded layout, or excludes it."""
    ys = function.results
    # Numbers are the same on every rank; a gradient would be that of a shard.
    xs = [x for x in function.operands if x.requires_grad or not set(x.shape) <= {1}]
    values, traits = [*xs, *ys], function.traits
    # Parameters are the same on every rank, and arrays are not in the graph.
    are_inner = all(x.is_inner for x in xs) and not (traits and traits.takes_arrays)
    possible = kept_axes(traits, values) if are_inner else {}
    if possible:
        groups.join(values)
    for value in values:
        groups.exclude(value, *(a for a in SHARDED_LAYOUTS if a not in possible))


def kept_axes(
    operation: _core.Operation | None, values: Sequence[Value | Variable]
) -> dict[str, int]:
    """By layout, the axis along which results are shards if all operands are.

    Args:
        values: the operands and results.
    """
    if operation is None or operation.inputs is not None:
        return {}
    y = values[-1]
    axes = {
        "channel": (1, operation.is_channelwise),
        "batch": (0, operation.is_batchwise),
        "features": (y.ndim - 1, operation.locality == _core.Locality.pointwise),
    }
    return {
        layout: axis
        for layout, (axis, is_kept) in axes.items()
        if is_kept
        and all(v.ndim == y.ndim > 1 and v.shape[axis] == y.shape[axis] for v in values)
    }
