"""Memory layouts, views of memory, and ``chainer.utils.array``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

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


CUDNN_CHANNEL_FIRST_X = None
CUDNN_CHANNEL_LAST_X = "CUDNN_CHANNEL_LAST_X"
CUDNN_CHANNEL_FIRST_W = None
CUDNN_CHANNEL_LAST_W = "CUDNN_CHANNEL_LAST_W"


def get_raw_shape(x: ArrayLike) -> tuple[int, ...]:
    """The shape of an array or Variable."""
    return x.shape


def get_semantic_shape(
    x: ArrayLike, *, assumed_layout: object = None
) -> tuple[int, ...]:
    """The shape of an array or Variable."""
    return x.shape


class TensorGeometry:
    """Where the elements of an array are, counted in elements of its base array."""

    def __init__(self, array: Array) -> None:
        self.shape = array.shape
        self.itemsize = array.itemsize
        self.strides = tuple(stride // array.itemsize for stride in array.strides)
        first = _address(array) - _address(_get_base_array(array))
        self.storage_offset = first // array.itemsize

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)


def _address(array: Any) -> int:
    return array.__array_interface__["data"][0]


def _get_base_array(array: Any) -> Any:
    """The array that owns the memory of a view."""
    base = array
    while isinstance(base.base, type(array)):
        base = base.base
    return base


def _reaches(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    return [(extent - 1) * stride for extent, stride in zip(shape, strides)]


def _min_index(
    shape: Sequence[int], strides: Sequence[int], storage_offset: int
) -> int:
    """The first element of the memory that a view has."""
    return storage_offset + sum(min(reach, 0) for reach in _reaches(shape, strides))


def _max_index(
    shape: Sequence[int], strides: Sequence[int], storage_offset: int
) -> int:
    """The last element of the memory that a view has."""
    return storage_offset + sum(max(reach, 0) for reach in _reaches(shape, strides))


def _stride_array(
    array: Any, shape: Sequence[int], strides: Sequence[int], storage_offset: int
) -> Any:
    """A view of the memory under ``array``; strides and offset are in elements.

    Raises:
        ValueError: an element is outside the memory.
    """
    memory = _get_base_array(array).ravel(order="K").view(array.dtype)
    lowest = _min_index(shape, strides, storage_offset)
    highest = _max_index(shape, strides, storage_offset)
    if lowest < 0 or highest >= memory.size:
        raise ValueError(
            f"as_strided: expected elements 0 to {memory.size - 1}, got {lowest} to "
            f"{highest}"
        )
    return numpy.lib.stride_tricks.as_strided(
        memory[storage_offset:], shape, [s * array.itemsize for s in strides]
    )
