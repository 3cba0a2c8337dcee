"""How parameters are divided among ranks: flat arrays of one row for each rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy

from renga import _core
from renga.communicators import Communicator
from renga.core.parameter import Parameter
from renga.core.types import Array

_LINE_BYTES = 64


class Piece(NamedTuple):
    """Elements [start, stop) of parameter ``param``, at ``offset`` of a rank's row."""

    param: int
    start: int
    stop: int
    offset: int


class ShardLayout:
    """Parameters of one dtype in an array (ranks, elements).

    Pieces begin at cache lines, so that kernels compute the same bits as for whole
    parameters.

    Args:
        indices: of the parameters, in the order of the array.
        params: all parameters.
        ranks: the number of rows.
        cuts: whether rows end within parameters, and are of equal length; otherwise
            each parameter is in one row, the largest first in the shortest row.
    """

    def __init__(
        self,
        indices: Sequence[int],
        params: Sequence[Parameter],
        ranks: int,
        cuts: bool,
    ) -> None:
        self.indices = list(indices)
        self._shapes = {i: params[i].shape for i in indices}
        self._sizes = {i: params[i].size for i in indices}
        # Ranks with other blocks of the same parameters have the same ones in a row,
        # since the norm of such a parameter is a sum over these ranks.
        self._full_sizes = {i: _full_size(params[i]) for i in indices}
        self.dtype = params[indices[0]].dtype
        self._device = params[indices[0]].device_name
        self.is_on_host: bool = params[indices[0]].xp is numpy
        self.ranks = ranks
        self._line = _LINE_BYTES // self.dtype.itemsize
        self._begin: dict[int, int] = {}
        self._row_of: dict[int, int] = {}  # of parameters that are in one row
        self.row = self._cut_rows() if cuts else self._whole_rows()

    @property
    def row_bytes(self) -> int:
        """Of one row; rows of several layouts that follow each other are aligned."""
        return int(self.row * self.dtype.itemsize)

    def _padded(self, size: int) -> int:
        return -(-size // self._line) * self._line

    def _cut_rows(self) -> int:
        total = 0
        for i in self.indices:
            self._begin[i] = total
            total += self._padded(self._sizes[i])
        return self._padded(-(-total // self.ranks))

    def _whole_rows(self) -> int:
        lengths, loads = [0] * self.ranks, [0] * self.ranks
        offsets = {}
        for i in sorted(self.indices, key=lambda i: -self._full_sizes[i]):
            r = loads.index(min(loads))
            offsets[i] = (r, lengths[r])
            lengths[r] += self._padded(self._sizes[i])
            loads[r] += self._padded(self._full_sizes[i])
        row = max(lengths)
        self._begin = {i: r * row + offset for i, (r, offset) in offsets.items()}
        self._row_of = {i: r for i, (r, _) in offsets.items() if self._full_sizes[i]}
        return row

    def empty(self) -> Array:
        """A new array of all rows, on the parameters' device."""
        flat: Array = _core.empty((self.ranks, self.row), self.dtype, self._device)
        return flat

    def window(self, comm: Communicator) -> Array:
        """As :meth:`empty`, on the CPU and in a window: every rank calls it."""
        return comm.window((self.ranks, self.row), self.dtype)

    def empty_row(self) -> Array:
        """A new array of one row."""
        row: Array = _core.empty((self.row,), self.dtype, self._device)
        return row

    def views(self, flat: Array) -> list[Array]:
        """The parameters' parts of an array, in the order of ``indices``."""
        x = flat.reshape(-1)
        return [
            x[self._begin[i] : self._begin[i] + self._sizes[i]].reshape(self._shapes[i])
            for i in self.indices
        ]

    def pieces(self, rank: int) -> list[Piece]:
        """What is in a rank's row; empty parameters are in all rows."""
        low, high = rank * self.row, (rank + 1) * self.row
        found = []
        for i in self.indices:
            begin, end = self._begin[i], self._begin[i] + self._sizes[i]
            start, stop = max(begin, low), min(end, high)
            if begin == end and self._row_of.get(i, rank) == rank:
                found.append(Piece(i, 0, 0, 0))
            elif start < stop:
                found.append(Piece(i, start - begin, stop - begin, start - low))
        return found


def _full_size(param: Parameter) -> int:
    """The number of elements, also of those that other ranks of the model have."""
    return math.prod(getattr(param, "whole_shape", None) or param.shape)
