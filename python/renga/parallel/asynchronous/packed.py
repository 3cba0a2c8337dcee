"""The parameters of a model as one flat array for each dtype."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from renga import _core
from renga.communicators import Communicator
from renga.core.link import Link
from renga.core.link.distinct_params import distinct_params
from renga.core.link.sharing_memory import overlapping
from renga.core.parameter import Parameter
from renga.core.types import Array

# Elements that stay in the cache from one operation to the next.
_BLOCK = 1 << 15


class PackedParameters:
    """Copies the arrays of a model's initialized parameters into flat ones and back.

    Args:
        model: each of its parameters is there once, in the order of their names.
    """

    def __init__(self, model: Link) -> None:
        self._distinct = distinct_params(model, include_uninit=False)
        params = [each.param for each in self._distinct]
        dtypes = sorted({param.dtype.str for param in params})
        self.groups = [[p for p in params if p.dtype.str == d] for d in dtypes]

    @property
    def params(self) -> list[Parameter]:
        """In the order of their parts of the flat arrays."""
        return [param for group in self.groups for param in group]

    def are_trained(self) -> list[bool]:
        """Of each parameter, whether it or one that has its array is not frozen."""
        rules = ((id(param), param.update_rule) for param in self.params)
        trained = {key for key, rule in rules if rule is not None and rule.enabled}
        for group in overlapping(self._distinct):
            ids = {id(each.param) for each in group}
            if not trained.isdisjoint(ids):
                trained |= ids
        return [id(param) in trained for param in self.params]

    def pack(self) -> list[Array]:
        """A new flat array of each dtype."""
        flats = self.empty()
        self.pack_into(flats)
        return flats

    def empty(self) -> list[Array]:
        """What ``pack`` returns, not initialized."""
        # The core's allocator gives the memory: NumPy's gives it back to the system
        # each time, and to touch fresh memory takes longer than to copy.
        return [
            _core.empty(
                sum(param.size for param in group), group[0].dtype, group[0].device_name
            )
            for group in self.groups
        ]

    def pack_into(self, flats: Sequence[Array]) -> None:
        """Copies the parameters into flat arrays."""
        for param, view in zip(self.params, self.views(flats)):
            view[...] = param.array

    def unpack(self, flats: Sequence[Array]) -> None:
        """Overwrites the parameters."""
        for x, view in self._pairs(flats):
            x[...] = view

    def add(self, flats: Sequence[Array]) -> None:
        """Adds to the parameters."""
        for x, view in self._pairs(flats):
            x += view

    def subtract(self, flats: Sequence[Array]) -> None:
        """Subtracts from the parameters."""
        for x, view in self._pairs(flats):
            x -= view

    def move(self, part: float, flats: Sequence[Array]) -> None:
        """Moves by ``part (y - x)``, which replaces the flat arrays y."""
        for x, step in self._blocks(flats):
            step -= x
            step *= step.dtype.type(part)
            x += step

    def _blocks(self, flats: Sequence[Array]) -> Iterator[tuple[Array, Array]]:
        """Parts of ``_pairs`` that stay in the cache from one operation to the next."""
        for x, view in self._pairs(flats):
            if x.size <= _BLOCK:
                yield x, view
                continue
            rows = max(1, _BLOCK * len(x) // x.size)
            for begin in range(0, len(x), rows):
                yield x[begin : begin + rows], view[begin : begin + rows]

    def _pairs(self, flats: Sequence[Array]) -> list[tuple[Array, Array]]:
        groups = overlapping(self._distinct)
        # The arrays of these are those of other parameters, which are changed instead.
        aliases = {id(each.param) for _, *others in groups for each in others}
        return [
            (param.array, view)
            for param, view in zip(self.params, self.views(flats))
            if id(param) not in aliases
        ]

    def views(self, flats: Sequence[Array]) -> list[Array]:
        """The parts of flat arrays, in the shapes of the parameters."""
        found = []
        for group, flat in zip(self.groups, flats):
            begin = 0
            for param in group:
                part = flat[begin : begin + param.size].reshape(param.shape)
                found.append(part)
                begin += param.size
        return found


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
