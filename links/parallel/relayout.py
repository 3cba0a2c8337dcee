"""How a variable lies on the ranks of a communicator, and changes from one to another.

On every rank a gradient lies as the value does: that of a replicated variable is the
whole gradient, the same on all ranks; that of a shard is this rank's part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from renga import _core
from renga.function_node import FunctionNode
from renga.functions.noise.seed import expect_parts
from renga.links.parallel.shard import lengths, shares
from renga.utils.type_check import InvalidType
from renga.variable import Variable, as_variable

Finish = Callable[[], numpy.ndarray]


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


LAYOUTS = {
    "replicated": REPLICATED,
    "batch": sharded(0),
    "channel": sharded(1),
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
        own = x.shape[source.axis]
        if extent is not None:
            from_parts = lengths(shares(extent, comm.size))
        else:
            from_parts = comm.all_gather(numpy.array(own)).tolist()
        _require_share(comm, source, own, from_parts)
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
            return _exchange(comm, x, axes, parts, wait)
        if source.axis >= 0:
            return _gather(comm, x, source.axis, self.from_parts, wait)
        if source == PARTIAL and target.axis >= 0:
            return _reduce_scatter(comm, x, target.axis, self.to_parts, wait)
        if source == PARTIAL:
            return _all_reduce(comm, x, wait)
        if target.axis >= 0:
            own = split(x, target.axis, self.to_parts)[comm.rank]
            return lambda: own
        return lambda: x


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
        expect_parts()

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self.change.start(inputs[0], wait=True)(),)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        return (self.change.adjoint().apply(grad_outputs[0]),)


def _gather(
    comm: Any, x: numpy.ndarray, axis: int, parts: Sequence[int], wait: bool
) -> Finish:
    """All ranks' parts of an axis, one after another."""
    y = empty_image(_with_extent(x.shape, axis, sum(parts)), x.dtype)
    own, at = in_memory_order(x), _moved(axis, x.ndim)
    if len(set(parts)) == 1:
        rows = _rows(in_memory_order(y), at, comm.size)
        return _finish(comm.all_gather(own, out=rows, wait=wait), wait, y)
    padded = _padded(own, {at: max(parts)})
    rows = _core.empty((comm.size, *padded.shape), x.dtype)
    work = comm.all_gather(padded, out=rows, wait=wait)
    places = split(in_memory_order(y), at, parts)
    return _finish(work, wait, y, zip(places, rows))


def _reduce_scatter(
    comm: Any, x: numpy.ndarray, axis: int, parts: Sequence[int], wait: bool
) -> Finish:
    """This rank's part along an axis of the sum of all ranks' ``x``."""
    y = empty_image(_with_extent(x.shape, axis, parts[comm.rank]), x.dtype)
    whole, at = in_memory_order(x), _moved(axis, x.ndim)
    if len(set(parts)) == 1:
        rows = _rows(whole, at, comm.size)
        work = comm.reduce_scatter(rows, out=in_memory_order(y), wait=wait)
        return _finish(work, wait, y)
    rows = numpy.stack([_padded(p, {at: max(parts)}) for p in split(whole, at, parts)])
    padded = _core.empty(rows.shape[1:], x.dtype)
    work = comm.reduce_scatter(rows, out=padded, wait=wait)
    return _finish(work, wait, y, [(in_memory_order(y), padded)])


def _all_reduce(comm: Any, x: numpy.ndarray, wait: bool) -> Finish:
    """The sum of all ranks' ``x``."""
    y = empty_image(x.shape, x.dtype)
    work = comm.all_reduce(in_memory_order(x), out=in_memory_order(y), wait=wait)
    return _finish(work, wait, y)


def _exchange(
    comm: Any,
    x: numpy.ndarray,
    axes: tuple[int, int],
    parts: tuple[Sequence[int], Sequence[int]],
    wait: bool,
) -> Finish:
    """From parts along one axis to parts along another."""
    source, target = axes
    from_parts, to_parts = parts
    shape = _with_extent(x.shape, source, sum(from_parts))
    y = empty_image(_with_extent(shape, target, to_parts[comm.rank]), x.dtype)
    own, result = in_memory_order(x), in_memory_order(y)
    source, target = _moved(source, x.ndim), _moved(target, x.ndim)
    if len({*from_parts}) == len({*to_parts}) == 1:
        places = _rows(result, source, comm.size)
        sent = _rows(own, target, comm.size)
        return _finish(comm.all_to_all(sent, out=places, wait=wait), wait, y)
    room = {source: max(from_parts), target: max(to_parts)}
    sent = numpy.stack([_padded(part, room) for part in split(own, target, to_parts)])
    rows = _core.empty(sent.shape, x.dtype)
    work = comm.all_to_all(sent, out=rows, wait=wait)
    return _finish(work, wait, y, zip(split(result, source, from_parts), rows))


def _padded(x: numpy.ndarray, extents: Mapping[int, int]) -> numpy.ndarray:
    """``x`` with zeros behind it along some axes, up to these extents."""
    behind = [(0, extents.get(i, n) - n) for i, n in enumerate(x.shape)]
    return numpy.pad(x, behind)


def _finish(
    work: Any,
    wait: bool,
    y: numpy.ndarray,
    padded: Iterable[tuple[numpy.ndarray, numpy.ndarray]] = (),
) -> Finish:
    """Waits for ``work``, unless that is done, fills places of ``y`` and returns it."""

    def finish() -> numpy.ndarray:
        if not wait:
            work.wait()
        for place, part in padded:
            place[...] = part[tuple(slice(n) for n in place.shape)]
        return y

    return finish


def split(x: Any, axis: int, parts: Sequence[int]) -> list[Any]:
    """Views of successive parts of an axis."""
    ends = numpy.cumsum([0, *parts]).tolist()
    ahead = (slice(None),) * axis
    return [x[(*ahead, slice(a, b))] for a, b in zip(ends, ends[1:])]


def empty_image(shape: Sequence[int], dtype: Any) -> numpy.ndarray:
    """Room for an image with its channels last in memory, as convolutions have them."""
    if len(shape) < 4:
        return _core.empty(tuple(shape), numpy.dtype(dtype))
    memory = _core.empty((shape[0], *shape[2:], shape[1]), numpy.dtype(dtype))
    return numpy.moveaxis(memory, -1, 1)


def in_memory_order(x: numpy.ndarray) -> numpy.ndarray:
    """The view of an image that is contiguous where its channels are last.

    It is a matter of the number of axes only: all ranks have to send in one order.
    """
    return x if x.ndim < 4 else numpy.moveaxis(x, 1, -1)


def _moved(axis: int, ndim: int) -> int:
    """Where ``in_memory_order`` has an axis."""
    if ndim < 4 or axis == 0:
        return axis
    return ndim - 1 if axis == 1 else axis - 1


def _rows(x: numpy.ndarray, axis: int, size: int) -> numpy.ndarray:
    """A view whose first axis are the equal parts of another one."""
    shape = (*x.shape[:axis], size, x.shape[axis] // size, *x.shape[axis + 1 :])
    return numpy.moveaxis(x.reshape(shape), axis, 0)


def _with_extent(shape: Sequence[int], axis: int, extent: int) -> tuple[int, ...]:
    return (*shape[:axis], extent, *shape[axis + 1 :])
