"""Drawing from a fixed discrete distribution in constant time."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy

from renga.core.device_resident import DeviceResident, DeviceResidentsVisitor
from renga.core.types import Array


class WalkerAlias(DeviceResident):
    """Draws integers with the given weights by Walker's alias method.

    Source: A. J. Walker, An efficient method for generating discrete random variables
    with general distributions, 1977.
    """

    def __init__(self, probs: Sequence[float]) -> None:
        super().__init__()
        weights = numpy.array(probs, numpy.float32)
        weights /= weights.sum()
        scaled = (weights.astype(numpy.float64) * len(weights)).tolist()
        self.threshold = numpy.ones(len(weights), numpy.float32)
        cells = numpy.argsort(weights, kind="stable")
        self.values = numpy.repeat(cells, 2).astype(numpy.int32)
        # Each cell keeps its own value up to its threshold; what is missing to one
        # is filled from a value that has too much. In this order of cells, a seed
        # gives the integers that it gives in Chainer.
        filled = 0
        for cell, value in enumerate(cells.tolist()):
            p = scaled[value]
            while p > 1 and filled < cell:
                self.values[2 * filled + 1] = value
                p -= 1 - float(self.threshold[filled])
                filled += 1
            self.threshold[cell] = p

    @property
    def use_gpu(self) -> bool:
        """Whether the tables are on a GPU."""
        return not isinstance(self.threshold, numpy.ndarray)

    def device_resident_accept(self, visitor: DeviceResidentsVisitor) -> None:
        super().device_resident_accept(visitor)
        self.threshold = visitor.visit_array(self.threshold)
        self.values = visitor.visit_array(self.values)

    def sample(self, shape: int | tuple[int, ...]) -> Array:
        """Integers in the given shape, drawn from the array module's generator."""
        return self.sample_xp(self.xp, shape)

    def sample_gpu(self, shape: int | tuple[int, ...]) -> Array:
        """Integers on the GPU that the tables are on."""
        return self.sample_xp(self.xp, shape)

    def sample_xp(self, xp: ModuleType, shape: int | tuple[int, ...]) -> Array:
        """Integers drawn from the generator of the array module ``xp``."""
        point = xp.random.uniform(0, len(self.threshold), shape)
        cell = point.astype(numpy.int64)
        beyond = self.threshold[cell] < point - cell
        return self.values[2 * cell + beyond]
