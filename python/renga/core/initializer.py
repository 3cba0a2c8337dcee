"""Initializer: a callable that fills an array in place with its first values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from renga.core import backend
from renga.core.types import Array, DTypeLike


class Initializer:
    """Fills an array in place; the base of every initializer.

    ``dtype`` is the type of the parameters that it makes, or None for any
    type. A plain function of one array is an initializer too.
    """

    def __init__(self, dtype: DTypeLike | None = None) -> None:
        self.dtype = dtype

    def __call__(self, array: Array) -> None:
        """Fills ``array``."""
        raise NotImplementedError

    @staticmethod
    def _fill(array: Any, values: Any) -> None:
        """Copies values of any dtype into ``array``, on any device."""
        if isinstance(values, numpy.ndarray):
            backend.copyto(array, values.astype(array.dtype, copy=False))
        else:
            array[...] = values

    def _check_dtype(self, array: Any) -> None:
        if self.dtype is not None and array.dtype != numpy.dtype(self.dtype):
            raise ValueError(
                f"{type(self).__name__}: expected an array of "
                f"{numpy.dtype(self.dtype)}, got {array.dtype}"
            )


def get_fans(shape: Sequence[int]) -> tuple[int, int]:
    """(fan_in, fan_out): inputs per output of a weight, and outputs per input.

    Shapes:
        shape: (outputs, inputs, *kernel)
    """
    if len(shape) < 2:
        raise ValueError(f"get_fans: expected a shape of 2 axes or more, got {shape}")
    kernel = math.prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel
