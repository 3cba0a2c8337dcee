"""How the variables of a running model are placed, as far as its thread knows."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

from renga.core.around_call import variables_in
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_array
from renga.parallel.placement import REPLICATE, Placement, Shard
from renga.parallel.placement.activation_shard import (
    ActivationShard,
    ReadingSite,
    become_shards,
)
from renga.utils.type_check import InvalidType

Function = TypeVar("Function", bound=Callable[..., Any])

# Images are sharded along the spatial axes, from axis 2 on, which a SpatialGrid shards.
SPATIAL = Shard(2)


class PlacementTracker:
    """The placements of one run of a model.

    Unless recorded otherwise, arrays of ``least_axes`` or more, such as images and
    sequences, are placed as ``sharded``; others and parameters are replicated, and so
    are constants of the program that have one pixel or token, which stands for all.

    Args:
        take_shard: returns this rank's shard of a replicated array.
        called: the link that the program has called, where that is told.
        note_read: told where the program reads a shape or elements of a shard; None
            where nobody has to know.
        least_axes: of arrays that are sharded unless recorded otherwise.
    """

    def __init__(
        self,
        take_shard: Callable[[ArrayLike], object],
        sharded: Shard = SPATIAL,
        called: object = None,
        note_read: Callable[[ReadingSite], object] | None = None,
        least_axes: int = 3,
    ) -> None:
        self.take_shard = take_shard
        self.sharded = sharded
        self.called = called
        self._note_read = note_read
        self._least_axes = least_axes
        self._latest: list[Any] = []
        # The variables are kept with the placements, so that their ids are not reused.
        self._recorded: dict[int, tuple[Any, Placement]] = {}
        self._addresses: set[int] = set()  # of recorded arrays, which are kept
        self._uniform: dict[int, tuple[Any, Collection[int]]] = {}
        self.is_paused = False

    def sharded_axes(self, ndim: int) -> range:
        """The axes of a variable along which it may be sharded."""
        first = self.sharded.axis
        return range(first, ndim if self.sharded == SPATIAL else min(ndim, first + 1))

    def record_uniform(self, y: ArrayLike, xs: Sequence[ArrayLike]) -> None:
        """Takes note that ``y`` is the same for all of its pixels or tokens, if it is.

        Args:
            xs: replicated operands of a pointwise function, or what was broadcast.
        """
        if self.placement_of(y) != REPLICATE:
            return
        axes = {i for i in range(-y.ndim, 0) if all(self._is_same(x, i) for x in xs)}
        if axes.issuperset(axis - y.ndim for axis in self.sharded_axes(y.ndim)):
            self._uniform[id(y)] = y, axes

    def _is_same(self, x: ArrayLike, axis: int) -> bool:
        """Whether ``x`` is the same along an axis, counted from the last one."""
        return x.ndim < -axis or x.shape[axis] == 1 or axis in self.uniform_axes(x)

    def uniform_axes(self, x: ArrayLike) -> Collection[int]:
        """The axes, counted from the last, along which a replicated ``x`` is the same.

        They are known of what has been broadcast, and of pointwise functions of it; and
        none if those that may be sharded are not among them.
        """
        _, axes = self._uniform.get(id(x), (x, ()))
        return axes

    def record(self, x: ArrayLike, placement: Placement) -> None:
        """Takes note of how ``x`` is placed."""
        self._recorded[id(x)] = (x, placement)
        if not isinstance(x, Variable):
            self._addresses.add(_address(x))

    def placement_of(self, x: ArrayLike, least_axes: int | None = None) -> Placement:
        """How ``x`` is placed.

        Args:
            least_axes: of arrays that are sharded unless recorded otherwise, if that
                is not what is so for all.
        """
        recorded = self._recorded.get(id(x))
        if recorded is not None:
            return recorded[1]
        if isinstance(x, Parameter):
            return REPLICATE
        least = self._least_axes if least_axes is None else least_axes
        return self.sharded if getattr(x, "ndim", 0) >= least else REPLICATE

    def placement_of_operand(self, x: ArrayLike) -> Placement:
        """How an operand of a function is placed, which may be the program's constant.

        What functions and links return to the program is marked; within a link it need
        not be.
        """
        placement = self.placement_of(x)
        if placement != self.sharded or self._note_read is None or self._is_marked(x):
            return placement
        is_one = all(x.shape[i] == 1 for i in self.sharded_axes(x.ndim))
        return REPLICATE if is_one else placement

    def _is_marked(self, x: ArrayLike) -> bool:
        """Whether ``x`` has been computed, or made by a function of a known array."""
        if isinstance(x, ActivationShard) or id(x) in self._recorded:
            return True
        is_result = isinstance(x, Variable) and x.creator_node is not None
        return is_result or _address(as_array(x)) in self._addresses

    def note_shards(self, result: object) -> None:
        """Has the shards in a result tell where the program reads them."""
        if self._note_read is None:
            return
        # Without a reference, the caller would get another object of the core's.
        self._latest = variables_in(result)
        for y in self._latest:
            if isinstance(self.placement_of(y), Shard):
                become_shards(y)

    def note_read(self, site: ReadingSite) -> None:
        """Takes note of where the program reads, rather than a function."""
        if self._note_read is not None and not self.is_paused:
            self._note_read(site)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """A context whose functions know placements themselves."""
        before, self.is_paused = self.is_paused, True
        try:
            yield
        finally:
            self.is_paused = before


def _address(array: Any) -> int:
    """Where the elements of an array are, on the host or a device."""
    interface = getattr(array, "__array_interface__", None)
    address: int
    address, _ = (interface or array.__cuda_array_interface__)["data"]
    return address


class _TrackedThread(threading.local):
    tracker: PlacementTracker | None = None


_thread = _TrackedThread()


@contextlib.contextmanager
def tracking(tracker: PlacementTracker) -> Iterator[None]:
    """A context in which this thread's placements are tracked."""
    before, _thread.tracker = _thread.tracker, tracker
    try:
        yield
    finally:
        _thread.tracker = before


def current_tracker() -> PlacementTracker | None:
    """This thread's tracker; None where no tracked model runs."""
    return _thread.tracker


def is_called_by_program(link: object) -> bool:
    """Whether a link of a tracked model runs because the program has called it."""
    return _thread.tracker is None or _thread.tracker.called is link


def is_replicated(x: ArrayLike) -> bool:
    """Whether an image is known to be the same on every rank."""
    tracker = _thread.tracker
    return tracker is not None and tracker.placement_of(x) == REPLICATE


def placed(
    output: Placement = SPATIAL, *, x: Placement = SPATIAL
) -> Callable[[Function], Function]:
    """Declares the placements of a function of (communicator or link, x, ...).

    Replicated images come to a function of ``SPATIAL`` ones as this rank's shard.

    Args:
        output: the placement of the result.
        x: the placement that the function expects.

    Raises:
        InvalidType: by the function, where ``x`` cannot be placed so.
    """

    def declare(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> Any:
            tracker = _thread.tracker
            if tracker is None or tracker.is_paused:
                return function(*args, **kwargs)
            if x == SPATIAL and len(args) > 1:
                shard = _as_shard(tracker, function.__name__, args[1])
                args = (args[0], shard, *args[2:])
            elif x == SPATIAL:
                kwargs["x"] = _as_shard(tracker, function.__name__, kwargs["x"])
            with tracker.paused():
                y = function(*args, **kwargs)
            if output != SPATIAL:
                tracker.record(y, output)
            tracker.note_shards(y)
            return y

        return call  # type: ignore[return-value]

    return declare


def _as_shard(tracker: PlacementTracker, name: str, x: Any) -> Any:
    placement = tracker.placement_of(x)
    if getattr(x, "ndim", 0) < 3 or placement == SPATIAL:
        return x
    if placement == REPLICATE:
        return tracker.take_shard(x)
    raise InvalidType(
        f"{name}: expected images, got {x.shape} that came through spatial_broadcast"
    )
