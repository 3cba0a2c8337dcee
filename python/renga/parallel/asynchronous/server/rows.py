"""Rows of parameters, of which a batch reads a few only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Callable, NamedTuple

import numpy

from renga.core.link.distinct_params import DistinctParam
from renga.core.types import Array
from renga.parallel.asynchronous.server.shards import Shards


class RowPiece(NamedTuple):
    """Elements [start, stop) of a parameter whose rows have ``width`` elements."""

    start: int
    stop: int
    width: int

    def within(self, rows: Array) -> Array:
        """The rows of which there are elements in the piece."""
        begin = rows * self.width
        chosen: Array = rows[(begin + self.width > self.start) & (begin < self.stop)]
        return chosen

    def elements(self, rows: Array) -> Array:
        """Where the elements of rows are in the piece, in the order of the rows."""
        columns = numpy.arange(self.width) - self.start
        found = (rows[:, None] * self.width + columns).reshape(-1)
        chosen: Array = found[(found >= 0) & (found < self.stop - self.start)]
        return chosen


class ShardRows:
    """Which pieces of a shard are sent by rows.

    Args:
        pieces: one for each of the shard's; None for those that are sent whole.
    """

    def __init__(self, pieces: Sequence[RowPiece | None]) -> None:
        self.pieces = list(pieces)
        self.count = sum(piece is not None for piece in pieces)

    def take(self, arrays: Sequence[Array], rows: Sequence[Array]) -> list[Array]:
        """The elements to send; ``rows`` has an array for each piece with rows."""
        left = iter(rows)
        return [
            x if piece is None else x[piece.elements(next(left))]
            for piece, x in zip(self.pieces, arrays)
        ]

    def put(
        self, arrays: Sequence[Array], rows: Sequence[Array], taken: Sequence[Array]
    ) -> None:
        """Writes what ``take`` has returned into arrays."""
        left = iter(rows)
        for piece, x, y in zip(self.pieces, arrays, taken):
            where = slice(None) if piece is None else piece.elements(next(left))
            x[where] = y


class RowsOfBatch:
    """Finds the rows that a batch reads.

    Args:
        functions: by names of parameters; they return the indices of rows, from the
            arguments of the loss function.
        params: all parameters, with their names.

    Raises:
        ValueError: if there is no such parameter.
    """

    def __init__(
        self,
        functions: Mapping[str, Callable[..., object]],
        params: Sequence[DistinctParam],
    ) -> None:
        indices = {name: i for i, param in enumerate(params) for name in param.names}
        if not functions.keys() <= indices.keys():
            raise ValueError(
                f"create_server_optimizer: expected rows of {', '.join(indices)}, got "
                f"{', '.join(functions)}"
            )
        self._params = [distinct.param for distinct in params]
        self._functions = {indices[name]: f for name, f in functions.items()}
        for index in self._functions:
            if self._params[index].ndim == 0:
                raise ValueError(
                    "create_server_optimizer: expected rows of parameters with axes, "
                    f"got {self._params[index].name} without any"
                )

    def __bool__(self) -> bool:
        return bool(self._functions)

    def find(
        self, args: tuple[object, ...], kwds: dict[str, object]
    ) -> dict[int, Array]:
        """The sorted rows of a batch, by the index of the parameter.

        Raises:
            TypeError: if a function returns no integers.
            ValueError: if there is no such row.
        """
        found = {}
        for index, function in self._functions.items():
            chosen = numpy.asarray(function(*args, **kwds))
            if chosen.size and chosen.dtype.kind not in "iu":
                raise TypeError(
                    "create_server_optimizer: expected integers as rows of "
                    f"{self._params[index].name}, got {chosen.dtype}"
                )
            rows = numpy.unique(chosen.astype(numpy.int64))
            count = len(self._params[index].array)
            if rows.size and not 0 <= rows[0] <= rows[-1] < count:
                raise ValueError(
                    f"create_server_optimizer: expected rows in [0, {count}) of "
                    f"{self._params[index].name}, got {rows[0]} to {rows[-1]}"
                )
            found[index] = rows
        return found

    def check(self, gradients: Sequence[Array], rows: Mapping[int, Array]) -> None:
        """Raises ValueError if a gradient is not zero in other rows."""
        for index, chosen in rows.items():
            gradient = gradients[index]
            if numpy.count_nonzero(gradient) != numpy.count_nonzero(gradient[chosen]):
                raise ValueError(
                    "create_server_optimizer: expected zeros in the gradient of "
                    f"{self._params[index].name} outside of {chosen.size} rows of the "
                    "batch, got others"
                )

    def pieces(self, shards: Shards, shard: int) -> ShardRows:
        """Those of a shard."""
        return ShardRows(
            [
                RowPiece(piece.start, piece.stop, self._width(piece.param))
                if piece.param in self._functions
                else None
                for piece in shards.pieces(shard)
            ]
        )

    def _width(self, index: int) -> int:
        param = self._params[index]
        return int(param.size // len(param.array))
