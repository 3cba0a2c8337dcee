"""A parameter of which each rank holds a part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from renga import initializers
from renga.functions.noise.seed import enable_random_streams
from renga.parameter import Parameter
from renga.serializer import Deserializer, Serializer
from renga.utils.type_check import InvalidType


class Piece(NamedTuple):
    """What one rank holds of an array: along each axis named, the ranges given."""

    ranges: Mapping[int, Sequence[range]]

    def place(self, shape: Sequence[int]) -> Any:
        """What takes the piece from an array of ``shape``, or puts it there."""
        taken = (
            [i for part in self.ranges.get(axis, (range(n),)) for i in part]
            for axis, n in enumerate(shape)
        )
        return numpy.ix_(*[numpy.array(t, numpy.intp) for t in taken])


class ShardedParameter(Parameter):
    """A parameter of which each rank of ``comm`` holds a piece.

    It is drawn whole on every rank and cut then, so that ranks with the same seed have
    the parts of what one rank alone would have drawn. Files hold it whole: every rank
    has to take part in saving and loading.

    Args:
        pieces: by rank; they do not overlap and make the whole.
        shape: of the whole, None where it is not known yet.
        groups: above 1 the whole is the weight (I, O / groups, ...) of a grouped
            deconvolution, and pieces are of (O, I / groups, ...).
    """

    def __init__(
        self,
        comm: Any,
        initializer: Any,
        pieces: Sequence[Piece] = (),
        shape: Sequence[int] | None = None,
        groups: int = 1,
    ) -> None:
        super().__init__(None)
        self.comm = comm
        self.initializer = initializers._get_initializer(initializer)
        self.groups = groups
        self.whole_shape: tuple[int, ...] | None = None
        # What is computed with it is a part, for which each rank draws its own.
        self.random_stream = comm.rank + 1
        enable_random_streams()
        if shape is not None:
            self.lay_out(pieces, shape)
            self.initialize(shape)

    def lay_out(self, pieces: Sequence[Piece], shape: Sequence[int]) -> None:
        """Says what there is and what of it each rank has."""
        self.pieces = tuple(pieces)
        self.whole_shape = tuple(shape)

    def initialize(self, shape: Any) -> None:
        """Draws the whole array and keeps this rank's piece.

        ``shape`` is that of the whole or of the piece.
        """
        whole = initializers.generate_array(
            self.initializer, self.whole_shape or shape, numpy
        )
        self.array = self.piece_of(whole)
        if self._first_grad is None:
            self.grad = None
        else:
            self.grad = numpy.full_like(self.array, self._first_grad)

    def piece_of(self, whole: numpy.ndarray) -> numpy.ndarray:
        """A copy of this rank's piece of an array of the whole's shape.

        Raises:
            InvalidType: it has another shape.
        """
        if whole.shape != self.whole_shape:
            raise InvalidType(
                f"{self.name or 'parameter'} on rank {self.comm.rank} of "
                f"{self.comm.size}: expected a whole array of {self.whole_shape} "
                f"to take a piece of, got {whole.shape}"
            )
        whole = _regrouped(whole, self.groups)
        return numpy.array(whole[self._index(self.comm.rank, whole)], order="C")

    def whole(self, piece: numpy.ndarray | None = None) -> numpy.ndarray:
        """All ranks' pieces put together: of the values, or of what is given.

        Every rank has to call it.
        """
        piece = self.array if piece is None else piece
        first = numpy.empty(self.whole_shape or (), piece.dtype)
        whole = numpy.empty_like(_regrouped(first, self.groups))
        for rank, part in enumerate(self.comm.allgather(piece)):
            whole[self._index(rank, whole)] = part
        # Regrouping is its own inverse.
        return _regrouped(whole, self.groups)

    def _index(self, rank: int, whole: numpy.ndarray) -> Any:
        return self.pieces[rank].place(whole.shape)

    def full_array_serializer(self, serializer: Any) -> Any:
        """A serializer to which this parameter's arrays look as on one rank alone."""
        loads = isinstance(serializer, Deserializer)
        return (_Loading if loads else _Saving)(serializer, self)

    def sum_over_shards(self, value: float) -> float:
        """The sum of all ranks' values; every rank has to call it."""
        return float(self.comm.all_reduce(numpy.array([value]))[0])

    def _is_piece(self, value: Any) -> bool:
        return isinstance(value, numpy.ndarray) and value.shape == self.shape


class _Saving(Serializer):
    """Hands on whole arrays where it gets pieces of the parameter's shape."""

    def __init__(self, serializer: Any, param: ShardedParameter) -> None:
        self.serializer = serializer
        self.param = param

    def __getitem__(self, key: str) -> _Saving:
        return type(self)(self.serializer[key], self.param)

    def __call__(self, key: str, value: Any) -> Any:
        if self.param._is_piece(value):
            self.serializer(key, self.param.whole(value))
        else:
            self.serializer(key, value)
        return value


class _Loading(Deserializer):
    """Returns pieces where what is stored has the whole parameter's shape."""

    def __init__(self, serializer: Any, param: ShardedParameter) -> None:
        self.serializer = serializer
        self.param = param

    def __getitem__(self, key: str) -> _Loading:
        return type(self)(self.serializer[key], self.param)

    def on_failure(self, undo: Callable[[], Any]) -> None:
        self.serializer.on_failure(undo)

    def __call__(self, key: str, value: Any) -> Any:
        is_piece = self.param._is_piece(value)
        loaded = self.serializer(key, None if is_piece else value)
        if loaded is None:
            return value
        if is_piece or getattr(loaded, "shape", None) == self.param.whole_shape:
            return self.param.piece_of(loaded)
        return loaded


def _regrouped(whole: numpy.ndarray, groups: int) -> numpy.ndarray:
    """(I, O / groups, ...) as (O, I / groups, ...)."""
    if groups == 1:
        return whole
    inputs, outputs, *kernel = whole.shape
    split = whole.reshape(groups, inputs // groups, outputs, *kernel)
    return split.swapaxes(1, 2).reshape(groups * outputs, inputs // groups, *kernel)
