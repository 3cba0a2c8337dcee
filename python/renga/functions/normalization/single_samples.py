"""Normalization of each sample by itself: over groups of channels or its neighbours."""

from __future__ import annotations

import math

import numpy

from renga import _core
from renga.core.around_call import overridable
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.array.cast import cast
from renga.functions.check import check_axis, check_floats, check_shape
from renga.functions.on_host import beside
from renga.utils.extents import check_count, check_integer, check_real


def group_normalization(
    x: ArrayLike, groups: int, gamma: ArrayLike, beta: ArrayLike, eps: float = 1e-5
) -> Variable:
    """``(x - mean) / sqrt(variance + eps) gamma + beta``, moments over each group.

    Shapes:
        x: (N, C, …)
        gamma, beta: (C,), of any float dtype

    Raises:
        TypeError: ``groups`` is not an integer.
        ValueError: the channels cannot be divided into that many groups.
        InvalidType: shapes or dtypes do not fit.

    Source: Wu and He, Group normalization, 2018.
    """
    name = "group_normalization"
    groups = check_integer(name, "groups", groups)
    check_floats(name, x)
    check_floats(name, gamma, beta)
    fits = x.ndim >= 2 and gamma.shape == beta.shape == x.shape[1:2]
    check_shape(name, fits, "(N, C, …), (C,) and (C,)", x, gamma, beta)
    if groups < 1 or x.shape[1] % groups:
        raise ValueError(f"{name}: expected {x.shape[1]} channels in {groups} groups")
    return _core.ops.group_normalization(x, groups, gamma, beta, eps)


def layer_normalization(
    x: ArrayLike, gamma: ArrayLike, beta: ArrayLike, eps: float = 1e-5
) -> Variable:
    """``(x - mean) / sqrt(variance + eps) gamma + beta``, moments over the last axes.

    Shapes:
        x: (…, C)
        gamma, beta: (C,), or several of the last axes of x

    Raises:
        InvalidType: shapes or dtypes do not fit.

    Source: Ba et al., Layer normalization, 2016.
    """
    check_floats("layer_normalization", x)
    check_floats("layer_normalization", gamma, beta)
    return _core.ops.layer_normalization(x, gamma, beta, eps)


@overridable
def local_response_normalization(
    x: ArrayLike, n: int = 5, k: float = 2, alpha: float = 1e-4, beta: float = 0.75
) -> Variable:
    """``x / (k + alpha s) ** beta``, s the sum of squares of ``n`` adjacent channels.

    Shapes:
        x: (N, C, …)

    Raises:
        TypeError: ``n`` is not an integer, or another option not a number.
        ValueError: ``n`` is below 1.
        InvalidType: ``x`` has less than two axes or is not of floats.

    Source: Krizhevsky et al., ImageNet classification with deep convolutional neural
    networks, 2012.
    """
    name = "local_response_normalization"
    check_floats(name, x)
    check_shape(name, x.ndim >= 2, "(N, C, …)", x)
    n = check_count(name, "n", n)
    k, alpha = check_real(name, "k", k), check_real(name, "alpha", alpha)
    beta = check_real(name, "beta", beta)
    if x.dtype.char == "e":  # squares overflow at 256
        wide = cast(x, "float32")
        y = local_response_normalization(wide, n, k, alpha, beta)
        return cast(y, "float16")
    ops = _core.ops
    batch, channels = x.shape[:2]
    pixels = math.prod(x.shape[2:])
    squares = ops.reshape(ops.square(x), (batch, channels, pixels))
    i = numpy.arange(channels)
    near = (abs(i[:, None] - i) <= min(n // 2, channels)).astype(x.dtype)
    near = numpy.broadcast_to(near, (batch, *near.shape))
    sums = ops.reshape(ops.matmul(beside(x, near), squares), x.shape)
    return ops.multiply(x, (sums * alpha + k) ** -beta)


def normalize(
    x: ArrayLike, eps: float = 1e-5, axis: int | tuple[int, ...] = 1
) -> Variable:
    """``x / (|x| + eps)``, lengths taken over the axes.

    The gradient at a vector of zeros is ``gy / eps``.

    Raises:
        InvalidType: there is no such axis, or ``x`` is not of floats.
    """
    check_floats("normalize", x)
    axes = axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(check_axis("normalize", x, a) for a in axes)
    return _core.ops.normalize(x, eps, axes)
