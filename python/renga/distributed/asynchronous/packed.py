"""The parameters of a model as one flat array for each dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

if TYPE_CHECKING:
    from renga.communicators import Communicator
    from renga.communicators.communicator import Array
    from renga.link import Link


class PackedParameters:
    """Copies the arrays of a model's initialized parameters into flat ones and back.

    Args:
        model: its parameters are in the order of their names.
    """

    def __init__(self, model: Link) -> None:
        params = [param for _, param in sorted(model.namedparams(include_uninit=False))]
        dtypes = sorted({param.dtype.str for param in params})
        self.groups = [[p for p in params if p.dtype.str == d] for d in dtypes]

    def pack(self) -> list[Array]:
        """A new flat array of each dtype."""
        return [_flat([param.array for param in group]) for group in self.groups]

    def unpack(self, flats: Sequence[Array]) -> None:
        """Overwrites the parameters."""
        for x, view in self._views(flats):
            x[...] = view

    def add(self, flats: Sequence[Array]) -> None:
        """Adds to the parameters."""
        for x, view in self._views(flats):
            x += view

    def _views(self, flats: Sequence[Array]) -> list[tuple[Array, Array]]:
        found = []
        for group, flat in zip(self.groups, flats):
            begin = 0
            for param in group:
                part = flat[begin : begin + param.size].reshape(param.shape)
                found.append((param.array, part))
                begin += param.size
        return found


def _flat(arrays: list[Array]) -> Array:
    flat: Array = numpy.concatenate([x.reshape(-1) for x in arrays])
    return flat


def reduce(comm: Communicator, flats: list[Array], op: str) -> None:
    """Replaces arrays by their sums or means over the ranks."""
    for flat in flats:
        comm.all_reduce(flat, op, out=flat)


def distance(xs: Sequence[Array], ys: Sequence[Array]) -> float:
    """The Euclidean distance of two lists of arrays, computed in float64."""
    total = 0.0
    for x, y in zip(xs, ys):
        difference: Any = x.astype(numpy.float64) - y
        total += float(difference @ difference)
    return math.sqrt(total)
