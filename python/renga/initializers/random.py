"""Bases of the initializers that draw random numbers."""

from __future__ import annotations

from typing import Any

import numpy

from renga.core import initializer
from renga.core.types import Array, DTypeLike, Random
from renga.utils.argument import check_number


class RandomInitializer(initializer.Initializer):
    """Draws values from a distribution of size ``scale``.

    ``rng`` is a ``RandomState`` or a ``Generator``; by default NumPy's global
    generator on every device, so ``numpy.random.seed`` reproduces the values.
    """

    def __init__(
        self,
        scale: float = 0.05,
        dtype: DTypeLike | None = None,
        *,
        rng: Random | None = None,
    ) -> None:
        check_number(f"{type(self).__name__}: scale", scale)
        self.scale = scale
        self.rng = rng
        super().__init__(dtype)

    def __call__(self, array: Array) -> None:
        self._check_dtype(array)
        self._draw(array, self.scale)

    def _draw(self, array: Any, size: float) -> None:
        raise NotImplementedError

    def _generator(self) -> Any:
        return numpy.random if self.rng is None else self.rng


class FanInitializer(RandomInitializer):
    """Draws from a distribution whose size follows from the shape of the weight."""

    def __init__(
        self,
        scale: float = 1.0,
        dtype: DTypeLike | None = None,
        *,
        rng: Random | None = None,
    ) -> None:
        super().__init__(scale, dtype, rng=rng)

    def __call__(self, array: Array) -> None:
        self._check_dtype(array)
        if array.size == 0:
            return  # a weight without inputs has no fan_in
        fan_in, fan_out = initializer.get_fans(array.shape)
        self._draw(array, self.scale * self._size(fan_in, fan_out))

    def _size(self, fan_in: int, fan_out: int) -> float:
        raise NotImplementedError
