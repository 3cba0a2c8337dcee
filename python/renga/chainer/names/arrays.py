"""Deprecated functions of ``chainer.utils.array``."""

from __future__ import annotations

import warnings

import numpy

from renga.core.types import Array, ArrayLike


def _warn(name: str, instead: str) -> None:
    warnings.warn(
        f"chainer.utils.array.{name} is deprecated, use {instead}",
        DeprecationWarning,
        stacklevel=3,
    )


def as_vec(x: Array) -> Array:
    """``x.ravel()``."""
    _warn("as_vec", "numpy.ravel")
    return x if x.ndim == 1 else x.ravel()


def as_mat(x: Array) -> Array:
    """``x.reshape(len(x), -1)``."""
    _warn("as_mat", "numpy.reshape")
    return x if x.ndim == 2 else x.reshape(len(x), -1)


def empty_like(x: ArrayLike) -> Array:
    """``numpy.empty_like(x)``."""
    _warn("empty_like", "numpy.empty_like")
    return numpy.empty_like(x)
