"""Names of the extensions of ``chainer.training`` that plot."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import numpy

from renga.core.types import Array, ArrayLike, DTypeLike

_available = find_spec("matplotlib") is not None


class Reservoir:
    """A uniform random sample of at most ``size`` arrays, in the order of indices."""

    def __init__(
        self, size: int, data_shape: tuple[int, ...], dtype: DTypeLike = numpy.float32
    ) -> None:
        self.size = size
        self.data = numpy.zeros((size, *data_shape), dtype)
        self.idxs = numpy.zeros(size, numpy.int32)
        self.counter = 0

    def add(self, x: ArrayLike, idx: int | None = None) -> None:
        """Keeps ``x`` with probability ``size`` by the number of arrays so far."""
        slot: int | None = self.counter
        if self.counter >= self.size:
            chosen = numpy.random.random() < self.size / (self.counter + 1)
            slot = numpy.random.randint(self.size) if chosen else None
        if slot is not None:
            self.data[slot] = x
            self.idxs[slot] = idx or self.counter
        self.counter += 1

    def get_data(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        """The indices and the arrays, by index."""
        idxs = self.idxs[: min(self.counter, self.size)]
        order = numpy.argsort(idxs)
        return idxs[order], self.data[order]


class Statistician:
    """Computes means, deviations and percentiles."""

    def __init__(
        self, collect_mean: bool, collect_std: bool, percentile_sigmas: Sequence[float]
    ) -> None:
        self.collect_mean = collect_mean
        self.collect_std = collect_std
        self.percentile_sigmas = percentile_sigmas

    def __call__(
        self,
        x: Array,
        axis: int | tuple[int, ...] | None = 0,
        dtype: object = None,
        xp: object = None,
    ) -> dict[str, Array]:
        """The statistics along axes, along all if None."""
        if axis is None:
            axis = tuple(range(x.ndim))
        return self.collect(x, tuple(numpy.atleast_1d(axis)))

    def collect(self, x: Array, axis: tuple[int, ...]) -> dict[str, Array]:
        """The statistics along axes."""
        found = {}
        if self.collect_mean:
            found["mean"] = x.mean(axis=axis)
        if self.collect_std:
            found["std"] = x.std(axis=axis)
        if self.percentile_sigmas:
            found["percentile"] = numpy.percentile(x, self.percentile_sigmas, axis=axis)
        return found
