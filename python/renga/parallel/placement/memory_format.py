"""Images that are (N, C, H, W) logically and have their channels last in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from renga import _core

ops = _core.ops


def empty_beside(x: numpy.ndarray, shape: Sequence[int]) -> numpy.ndarray:
    """An uninitialized array of the dtype of ``x``, on the same device."""
    if isinstance(x, numpy.ndarray):
        return _core.empty(tuple(shape), x.dtype)
    return _core.empty(tuple(shape), x.dtype, f"cuda:{x.device.id}")


def empty_image(shape: Sequence[int], like: numpy.ndarray) -> numpy.ndarray:
    """An uninitialized array of the dtype of ``like``, on the same device.

    With four axes or more, its channels are last in memory: the order in which
    convolutions return images.
    """
    if len(shape) < 4:
        return empty_beside(like, shape)
    memory = empty_beside(like, (shape[0], *shape[2:], shape[1]))
    return memory.transpose(0, -1, *range(1, len(shape) - 1))


def channels_last(x: numpy.ndarray) -> numpy.ndarray:
    """The same image with its channels last in memory: itself, or a copy."""
    memory = in_memory_order(x)
    if memory.flags.c_contiguous:
        return x
    axes = (0, *range(2, x.ndim), 1)
    # The core transposes ten times as fast as NumPy.
    flat = ops.reshape(ops.transpose(x, axes), (-1,)).array
    copy: numpy.ndarray = flat.reshape(memory.shape)
    return copy.transpose(0, -1, *range(1, x.ndim - 1))


def in_memory_order(x: numpy.ndarray) -> numpy.ndarray:
    """The view of an image that is contiguous where its channels are last in memory.

    It depends on the number of axes only: all ranks have to send in one order.
    """
    return x if x.ndim < 4 else x.transpose(0, *range(2, x.ndim), 1)


def axis_in_memory_order(axis: int, ndim: int) -> int:
    """The position of an axis in the result of ``in_memory_order``."""
    if ndim < 4 or axis == 0:
        return axis
    return ndim - 1 if axis == 1 else axis - 1
