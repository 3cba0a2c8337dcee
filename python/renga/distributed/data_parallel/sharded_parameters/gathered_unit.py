"""Parameters that are gathered together when a function reads one of them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from renga.distributed.data_parallel.sharded_parameters.node_parameter import (
    is_shared,
    put,
    unit_of,
    without_numbers,
)
from renga.distributed.data_parallel.sharded_states.states import part_of

if TYPE_CHECKING:
    from renga.communicators.communicator import Array
    from renga.distributed.data_parallel.sharded_parameters.row_service import (
        RowService,
    )
    from renga.distributed.data_parallel.sharded_states.layout import Piece, ShardLayout
    from renga.parameter import Parameter


class GatheredUnit:
    """Parameters of one layout, of whose rows this rank keeps its own.

    Args:
        service: gets the other ranks' rows.
        rank: of this rank's row.
        layout: where the parameters are in rows.
        params: all parameters.
    """

    is_borrowed = False  # whether ``array`` may be read without a copy
    is_pinned = False  # whether a graph of gradients may read the numbers later

    def __init__(
        self,
        service: RowService,
        rank: int,
        layout: ShardLayout,
        params: Sequence[Parameter],
    ) -> None:
        self._service = service
        self._rank = rank
        self._layout = layout
        self._pieces = layout.pieces(rank)
        # Parameters refer to their unit, and the cycle would never be freed.
        self._refs = {i: weakref.ref(params[i]) for i in layout.indices}
        self.row = layout.empty_row()
        self.row[...] = 0
        self.number = service.add(self.row)
        self._flat: Array | None = None
        self._views: dict[int, Array] = {}  # by the id of the parameter

    @property
    def _params(self) -> Iterator[Parameter]:
        return (param for ref in self._refs.values() if (param := ref()) is not None)

    @property
    def is_gathered(self) -> bool:
        """Whether the numbers of all ranks are here."""
        return self._flat is not None

    def own_part(self, piece: Piece) -> Array:
        """The elements of a piece in this rank's row."""
        return self.row[piece.offset : piece.offset + piece.stop - piece.start]

    def take_own_copies(self) -> None:
        """Writes this rank's pieces of arrays that are its own to its row."""
        for piece in self._pieces:
            param = self._refs[piece.param]()
            if param is not None and unit_of(param) is not self:
                self.own_part(piece)[...] = part_of(param.array, piece)

    def place(self) -> None:
        """Frees all numbers but this rank's row.

        An array that something else refers to stays, and gets the values.
        """
        self.is_pinned = False
        self.free()
        for param in self._params:
            if param.size == 0 or unit_of(param) is self:
                continue
            if param._owns_array:
                put(param, without_numbers(param), self)
            else:
                param.array[...] = self._gathered()[id(param)]
        self.free()

    def gather(self) -> None:
        """Has functions read the numbers of all ranks."""
        if self._flat is None:
            views = self._gathered()
            for param in self._params:
                if unit_of(param) is self:
                    put(param, views[id(param)], self)

    def free(self) -> None:
        """Frees the numbers of all ranks, unless a graph still refers to them."""
        if self._flat is None:
            return
        for param in self._params:
            if unit_of(param) is self:
                put(param, without_numbers(param), self)
        self._flat, self._views = None, {}

    def read(self, param: Any) -> Array:
        """The gathered numbers of a parameter."""
        self.gather()
        return self._views[id(param)]

    def make_own(self) -> None:
        """Gives the parameters arrays that are this rank's own."""
        for param in self._params:
            if unit_of(param) is self:
                param.array  # noqa: B018 (copies)
        self.free()
        for param in self._params:
            if not is_shared(param):
                vars(param).pop("_unit", None)

    def _gathered(self) -> dict[int, Array]:
        if self._flat is None:
            flat = self._layout.empty()
            flat[self._rank] = self.row
            if flat.size:
                self._service.fetch(self.number, flat)
            self._flat = flat
            self._views = {
                id(ref()): view
                for ref, view in zip(self._refs.values(), self._layout.views(flat))
            }
        return self._views
