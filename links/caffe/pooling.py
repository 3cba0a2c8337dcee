"""Pooling with the sizes and divisors of Caffe."""

from __future__ import annotations

from typing import Any

import numpy

import renga.functions as F
from renga._core import Variable
from renga.core.types import ArrayLike

Pair = tuple[int, int]


def max_pooling(
    ksize: Pair, stride: Pair, pad: Pair, within: bool, x: ArrayLike
) -> Variable:
    """The maxima of windows.

    Args:
        within: whether all windows are within the padding; else the last may reach
            beyond it.
    """
    height, width = _out_sizes(x, ksize, stride, pad, within)
    y = F.max_pooling_2d(x, ksize, stride, pad, cover_all=True)
    return y[:, :, :height, :width]


def average_pooling(
    ksize: Pair, stride: Pair, pad: Pair, within: bool, x: ArrayLike
) -> Variable:
    """The means of windows; padding counts, but not what is beyond it.

    Args:
        within: as for ``max_pooling``.
    """
    outs = _out_sizes(x, ksize, stride, pad, within)
    margins, counts = [], []
    for size, k, s, p, out in zip(x.shape[2:], ksize, stride, pad, outs):
        margins.append((p, max((out - 1) * s + k - size - p, 0)))
        counts.append(numpy.minimum(k, size + 2 * p - s * numpy.arange(out)))
    x = F.pad(x, ((0, 0), (0, 0), *margins), "constant")
    y = F.average_pooling_2d(x, ksize, stride)
    if all((n == k).all() for n, k in zip(counts, ksize)):
        return y
    factors = ksize[0] * ksize[1] / numpy.outer(*counts)
    return y * factors.astype(y.dtype)


def _out_sizes(x: Any, ksize: Pair, stride: Pair, pad: Pair, within: bool) -> list[int]:
    """The numbers of windows; the last of them begins before the end of the image."""
    outs = []
    for size, k, s, p in zip(x.shape[2:], ksize, stride, pad):
        steps = size + 2 * p - k
        out = (steps // s if within else -(-steps // s)) + 1
        outs.append(out - 1 if (out - 1) * s >= size + p else out)
    return outs
