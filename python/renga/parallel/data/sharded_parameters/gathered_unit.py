"""Parameters that are gathered together when a function reads one of them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy

from renga.backends import cuda
from renga.core.parameter import Parameter
from renga.core.types import Array
from renga.parallel.data.sharded_parameters.node_parameter import (
    Place,
    forget_place,
    is_shared,
    put,
    unit_of,
    without_numbers,
)
from renga.parallel.data.sharded_parameters.row_service import (
    RowService,
)
from renga.parallel.data.sharded_states.held_arrays import is_held
from renga.parallel.data.sharded_states.layout import Piece, ShardLayout
from renga.parallel.data.sharded_states.states import part_of


class Reads(Protocol):
    """A thread that is told of units whose arrays Python code reads."""

    @property
    def is_of_this_thread(self) -> bool: ...
    def read(self, unit: GatheredUnit) -> None: ...


class GatheredUnit:
    """Parameters of one layout, of whose rows this rank keeps its own.

    Args:
        service: gets the other ranks' rows.
        reads: of the thread, which is told of arrays that Python code reads.
        lock: that of the parameters' places.
        rank: of this rank's row.
        layout: where the parameters are in rows.
        sent: this rank's row where others get it, in main memory.
        params: all parameters.
        stays: whether the numbers of all ranks are kept until the next update.
    """

    is_borrowed = False  # whether this thread may read ``array`` without a copy

    def __init__(
        self,
        service: RowService,
        reads: Reads,
        lock: AbstractContextManager[object],
        rank: int,
        layout: ShardLayout,
        sent: Array,
        params: Sequence[Parameter],
        stays: bool,
    ) -> None:
        self._service = service
        self._reads = reads
        self._lock = lock
        self._rank = rank
        self._layout = layout
        self._stays = stays
        # Whether nothing but an update frees the numbers: a graph may read them later.
        self.is_pinned = stays
        self._pieces = layout.pieces(rank)
        # Parameters refer to their unit, and the cycle would never be freed.
        self._refs = {i: weakref.ref(params[i]) for i in layout.indices}
        self._sent = sent
        self.row = sent if layout.is_on_host else layout.empty_row()
        self.row[...] = 0
        self.number = service.add(sent)
        self._flat: Any = None  # all rows; in main memory until they are complete
        self._works: list[Any] = []  # that fill it
        self._is_complete = False
        self._views: dict[int, Array] = {}  # by the id of the parameter

    @property
    def _params(self) -> Iterator[Parameter]:
        return (param for ref in self._refs.values() if (param := ref()) is not None)

    @property
    def is_gathered(self) -> bool:
        """Whether the numbers of all ranks are here."""
        return self._is_complete

    def own_part(self, piece: Piece) -> Array:
        """The elements of a piece in this rank's row."""
        return self.row[piece.offset : piece.offset + piece.stop - piece.start]

    def take_own_copies(self) -> None:
        """Writes this rank's pieces of arrays that are its own to its row."""
        for piece in self._pieces:
            param = self._refs[piece.param]()
            if param is not None and unit_of(param) is not self:
                self.own_part(piece)[...] = part_of(param.array, piece)

    def publish(self) -> None:
        """Lets other ranks have this rank's row as it is now."""
        if self._sent is not self.row:
            self._sent[...] = cuda.to_cpu(self.row)

    def place(self) -> None:
        """Frees all numbers but this rank's row.

        An array that something else refers to stays, and gets the values.
        """
        self.is_pinned = self._stays
        self.free()
        with self._lock:
            for param in self._params:
                if param.size == 0 or unit_of(param) is self:
                    continue
                if is_held(param):
                    param.array[...] = self.read(param)
                else:
                    self._put(param, without_numbers(param))
        self.free()

    def request(self) -> None:
        """Begins to gather the numbers of all ranks."""
        if self._flat is None:
            self._flat, self._works = self._fetch()

    def gather(self) -> None:
        """Has functions read the numbers of all ranks."""
        if self._is_complete:
            return
        self.request()
        self.finish()
        self._flat = self._on_device(self._flat)
        views = self._layout.views(self._flat)
        with self._lock:
            for ref, view in zip(self._refs.values(), views):
                param = ref()
                if param is not None:
                    self._views[id(param)] = view
                    if unit_of(param) is self:
                        self._put(param, view)
        self._is_complete = True

    def free(self) -> None:
        """Frees the numbers of all ranks, unless a graph still refers to them."""
        self.finish()
        with self._lock:
            for param in self._params if self._is_complete else ():
                if unit_of(param) is self:
                    self._put(param, without_numbers(param))
        self._flat, self._views, self._is_complete = None, {}, False

    def _put(self, param: Parameter, array: Array) -> None:
        put(param, Place(array, self._lock, self))

    def _fetch(self) -> tuple[Array, list[Any]]:
        """All rows in main memory, and works that fill them."""
        if self._sent is self.row:
            flat = self._layout.empty()
        else:
            shape = self._layout.ranks, self._layout.row
            flat = numpy.empty(shape, self._layout.dtype)
        flat[self._rank] = self._sent
        return flat, self._service.fetch(self.number, flat) if flat.size else []

    def _on_device(self, flat: Array) -> Array:
        if self._sent is self.row:
            return flat
        moved: Array = cuda.to_gpu(flat, self.row.device)
        return moved

    def finish(self) -> None:
        """Waits for what has been requested."""
        works, self._works = self._works, []
        for work in works:
            work.wait()

    def read(self, param: Parameter) -> Array:
        """The numbers of a parameter, of which another thread has gathered its own."""
        if not self._reads.is_of_this_thread:
            return self._read_apart(param)
        self._reads.read(self)
        return self._views[id(param)]

    @property
    def lends(self) -> bool:
        """Whether what :meth:`read` returns may be read without a copy."""
        return self.is_borrowed and self._reads.is_of_this_thread

    def _read_apart(self, param: Any) -> Array:
        """The numbers of a parameter for a thread that has the lock."""
        view = self._views.get(id(param))
        if view is None:
            flat, works = self._fetch()
            for work in works:
                work.wait()
            views = self._layout.views(self._on_device(flat))
            refs = self._refs.values()
            view = next(view for ref, view in zip(refs, views) if ref() is param)
        return view

    def make_own(self) -> None:
        """Gives the parameters arrays that are this rank's own."""
        for param in self._params:
            if unit_of(param) is self:
                param.array  # noqa: B018 (copies)
        self.free()
        for param in self._params:
            if not is_shared(param):
                forget_place(param)
