"""Fourier transforms of complex numbers, given as real and imaginary parts."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_alike, check_shape


def fft(x: tuple[ArrayLike, ArrayLike]) -> tuple[Variable, Variable]:
    """The Fourier transform along the last axis of ``(real, imaginary)``.

    Raises:
        ValueError: ``x`` is not a pair.
        InvalidType: shapes or dtypes differ, or there is no axis.
    """
    return _transform("fft", x)


def ifft(x: tuple[ArrayLike, ArrayLike]) -> tuple[Variable, Variable]:
    """The inverse of the Fourier transform along the last axis.

    Raises:
        ValueError: ``x`` is not a pair.
        InvalidType: shapes or dtypes differ, or there is no axis.
    """
    return _transform("ifft", x)


def _transform(name: str, x: tuple[Any, Any]) -> tuple[Variable, Variable]:
    try:
        real, imaginary = x
    except ValueError:
        raise ValueError(
            f"{name}: expected a pair of real and imaginary parts, got {len(x)}"
        ) from None
    check_alike(name, real, imaginary)
    check_shape(name, real.ndim > 0, "1 axis or more", real)
    real, imaginary = getattr(_core.ops, name)(real, imaginary)
    return real, imaginary
