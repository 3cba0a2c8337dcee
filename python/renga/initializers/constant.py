"""Initializers without random numbers."""

from __future__ import annotations

from typing import Any

import numpy

from renga.core import initializer
from renga.core.types import Array, DTypeLike, Operand


class Constant(initializer.Initializer):
    """Fills an array with a number, or copies an array of the same shape."""

    fill_value: Any = None

    def __init__(self, fill_value: Operand, dtype: DTypeLike | None = None) -> None:
        self.fill_value = fill_value
        super().__init__(dtype)

    def __call__(self, array: Array) -> None:
        self._check_dtype(array)
        self._fill(array, self.fill_value)


class _Fixed(initializer.Initializer):
    fill_value: float

    def __call__(self, array: Array) -> None:
        self._check_dtype(array)
        array[...] = self.fill_value


class Zero(_Fixed):
    """Fills an array with zeros."""

    fill_value = 0.0


class One(_Fixed):
    """Fills an array with ones."""

    fill_value = 1.0


class NaN(_Fixed):
    """Fills an array with NaN, so that an unset value is noticed."""

    fill_value = numpy.nan


class Identity(initializer.Initializer):
    """Fills a square matrix with ``scale`` times the identity."""

    def __init__(self, scale: float = 1.0, dtype: DTypeLike | None = None) -> None:
        self.scale = scale
        super().__init__(dtype)

    def __call__(self, array: Array) -> None:
        self._check_dtype(array)
        if array.ndim != 2 or array.shape[0] != array.shape[1]:
            raise ValueError(f"Identity: expected a square matrix, got {array.shape}")
        self._fill(array, self.scale * numpy.eye(len(array)))
