"""Normalization by neighbouring channels."""

from __future__ import annotations

import math

import numpy

from renga import _core
from renga.core.around_call import overridable
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.array.cast import cast
from renga.functions.check import check_floats, check_shape
from renga.functions.on_host import beside
from renga.utils.extents import check_count, check_real


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
