"""Arrays whose elements increase in row-major order, in steps of 0.5 for floats."""

from __future__ import annotations

import numpy
from numpy.typing import DTypeLike


def increasing(*shape: int, dtype: DTypeLike = numpy.float32) -> numpy.ndarray:
    """Elements around 0, with 0 in their middle."""
    return _increasing(shape, dtype, numpy.prod(shape, dtype=int) // 2, 0)


def nonzero_increasing(
    *shape: int, dtype: DTypeLike = numpy.float32, bias: float = 1e-7
) -> numpy.ndarray:
    """Elements around 0, with ``bias`` in their middle."""
    return _increasing(shape, dtype, numpy.prod(shape, dtype=int) // 2, bias)


def positive_increasing(
    *shape: int, dtype: DTypeLike = numpy.float32, bias: float = 1e-7
) -> numpy.ndarray:
    """Elements from ``bias`` on."""
    return _increasing(shape, dtype, 0, bias)


def _increasing(
    shape: tuple[int, ...], dtype: DTypeLike, middle: int, bias: float
) -> numpy.ndarray:
    numbers = numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape) - middle
    step = 0.5 if numpy.dtype(dtype).kind == "f" else 1
    return (numbers * step + bias).astype(dtype)
