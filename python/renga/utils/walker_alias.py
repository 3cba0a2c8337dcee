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
        weights = numpy.asarray(probs, numpy.float64)
        scaled = weights * (len(weights) / weights.sum())
        self.threshold = numpy.ones(len(weights), numpy.float32)
        alias = numpy.arange(len(weights), dtype=numpy.int32)
        # Each cell keeps its own value up to its threshold; what is missing to one
        # is filled from a value that has too much.
        small = [i for i, p in enumerate(scaled) if p < 1]
        large = [i for i, p in enumerate(scaled) if p >= 1]
        while small and large:
            poor, rich = small.pop(), large[-1]
            self.threshold[poor] = scaled[poor]
            alias[poor] = rich
            scaled[rich] -= 1 - scaled[poor]
            if scaled[rich] < 1:
                small.append(large.pop())
        self.values = numpy.stack([numpy.arange(len(alias)), alias], 1)
        self.values = self.values.astype(numpy.int32).ravel()

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
