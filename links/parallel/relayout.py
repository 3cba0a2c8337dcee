"""How a variable lies on the ranks of a communicator, and changes from one to another.

On every rank a gradient lies as the value does: that of a replicated variable is the
whole gradient, the same on all ranks; that of a shard is this rank's part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from renga import _core
from renga.function_node import FunctionNode
from renga.functions.noise.seed import enable_random_streams
from renga.links.parallel.moves import (
    Finish,
    all_reduce,
    exchange,
    gather,
    reduce_scatter,
    split,
)
from renga.links.parallel.shard import lengths, shares
from renga.utils.type_check import InvalidType
from renga.variable import Variable, as_variable


class Layout(NamedTuple):
    """A way to lie on ranks: ``axis`` is the one that is shared out, if any is."""

    kind: str
    axis: int = -1

    def adjoint(self) -> Layout:
        """How the gradient lies."""
        return _ADJOINTS.get(self, self)


REPLICATED = Layout("replicated")  # the same on every rank
PARTIAL = Layout("partial")  # the value is the sum over the ranks
# The same on every rank, each of which uses it for itself: gradients are summed up.
EACH = Layout("each")
_ADJOINTS = {PARTIAL: EACH, EACH: PARTIAL}


def sharded(axis: int) -> Layout:
    """Shared out along an axis, in rank order."""
    return Layout("sharded", axis)


BATCH, CHANNEL = sharded(0), sharded(1)
LAYOUTS = {
    "replicated": REPLICATED,
    "batch": BATCH,
    "channel": CHANNEL,
    "rows": sharded(2),
    "columns": sharded(3),
}


def as_layout(layout: str | Layout) -> Layout:
    """The layout of that name.

    Raises:
        ValueError: there is none.
    """
    if isinstance(layout, Layout):
        return layout
    if layout not in LAYOUTS:
        raise ValueError(
            f"layout: expected one of {', '.join(LAYOUTS)}, got {layout!r}"
        )
    return LAYOUTS[layout]


def relayout(
    x: Any,
    comm: Any,
    source: str | Layout,
    target: str | Layout,
    extent: int | None = None,
) -> Variable:
    """The same variable in another layout; every rank has to call it.

    Layouts are ``replicated``, or shared out by ``batch``, ``channel``, ``rows`` or
    ``columns``, over the ranks of ``comm`` as in :mod:`renga.links.parallel.shard`.

    Args:
        extent: the whole extent of the axis along which ``x`` is shared out; told by
            the ranks to each other where it is None, shares then being what they are.

    Shapes:
        x, result: (N, C, H, W), or any; this rank's part along the layout's axis

    Raises:
        ValueError: there is no such layout.
    """
    x, source, target = as_variable(x), as_layout(source), as_layout(target)
    if source == target or comm.size == 1:
        return x
    from_parts: Sequence[int] = ()
    if source.axis >= 0:
        if extent is None:
            from_parts = told_parts(x, comm, source.axis)
        else:
            from_parts = lengths(shares(extent, comm.size))
        _require_share(comm, source, x.shape[source.axis], from_parts)
    to_parts: Sequence[int] = ()
    if target.axis >= 0:
        to_parts = lengths(shares(x.shape[target.axis], comm.size))
    return change_layout(x, comm, source, target, from_parts, to_parts)


def change_layout(
    x: Any,
    comm: Any,
    source: Layout,
    target: Layout,
    from_parts: Sequence[int] = (),
    to_parts: Sequence[int] = (),
) -> Variable:
    """``x`` in another layout, given how much of the axes each rank has."""
    return Change(comm, source, target, from_parts, to_parts).apply(x)


class Change(NamedTuple):
    """A change of layout; the parts say how much of the axes each rank has."""

    comm: Any
    source: Layout
    target: Layout
    from_parts: Sequence[int] = ()
    to_parts: Sequence[int] = ()

    def adjoint(self) -> Change:
        """What happens to gradients."""
        source, target = self.target.adjoint(), self.source.adjoint()
        return Change(self.comm, source, target, self.to_parts, self.from_parts)

    def apply(self, x: Any) -> Variable:
        """The variable ``x`` in the other layout."""
        if self.comm.size == 1:
            return as_variable(x)
        return Relayout(self).apply((x,))[0]

    def start(self, x: numpy.ndarray, wait: bool = False) -> Finish:
        """Starts to change an array; the function returned waits and gives it."""
        comm, source, target = self.comm, self.source, self.target
        if source == target or comm.size == 1:
            return lambda: x
        if source.axis >= 0 and target.axis >= 0:
            axes, parts = (source.axis, target.axis), (self.from_parts, self.to_parts)
            return exchange(comm, x, axes, parts, wait)
        if source.axis >= 0:
            return gather(comm, x, source.axis, self.from_parts, wait)
        if source == PARTIAL and target.axis >= 0:
            return reduce_scatter(comm, x, target.axis, self.to_parts, wait)
        if source == PARTIAL:
            return all_reduce(comm, x, wait)
        if target.axis >= 0:
            own = split(x, target.axis, self.to_parts)[comm.rank]
            return lambda: own
        return lambda: x


def told_parts(x: Any, comm: Any, axis: int) -> list[int]:
    """How much of an axis each rank has, which they tell each other."""
    return comm.all_gather(numpy.array(x.shape[axis])).tolist()


def _require_share(comm: Any, source: Layout, own: int, parts: Sequence[int]) -> None:
    if own != parts[comm.rank]:
        raise InvalidType(
            f"relayout: expected {parts[comm.rank]} of {sum(parts)} along axis "
            f"{source.axis} on rank {comm.rank} of {comm.size}, got {own}"
        )


class Relayout(FunctionNode):
    """One change of layout; its way back is the adjoint change."""

    def __init__(self, change: Change) -> None:
        self.change = change
        # What is drawn for parts must differ, as it does within the whole.
        whole = change.target == REPLICATED
        self.random_stream = 0 if whole else change.comm.rank + 1
        enable_random_streams()

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self.change.start(inputs[0], wait=True)(),)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        back, gy = self.change.adjoint(), grad_outputs[0]
        if _core.backprop_enabled():
            return (back.apply(gy),)
        return (Variable(back.start(gy.array, wait=True)()),)
