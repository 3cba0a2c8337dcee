"""Linear and bilinear maps."""

from __future__ import annotations

import math

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_arrays, check_floats, check_shape
from renga.utils.extents import check_count
from renga.utils.type_check import InvalidType


def linear(
    x: ArrayLike, W: ArrayLike, b: ArrayLike | None = None, n_batch_axes: int = 1
) -> Variable:
    """``x W^T + b``; the axes of ``x`` after the batch axes count as one.

    Shapes:
        x: (N, …) with I elements per sample
        W: (O, I)
        b: (O,)
        return: (N, O)

    Raises:
        ValueError: no batch axis.
        InvalidType: shapes or dtypes do not fit.
    """
    if n_batch_axes == 1 and getattr(x, "ndim", None) == 2:
        return _core.ops.linear(x, W, b)
    check_arrays("linear", x, W)
    n_batch_axes = check_count("linear", "n_batch_axes", n_batch_axes)
    if x.ndim <= n_batch_axes:
        raise InvalidType(
            f"linear: expected x of more than n_batch_axes={n_batch_axes} axes, got "
            f"{x.shape}"
        )
    batch = x.shape[:n_batch_axes]
    flat = (math.prod(batch), math.prod(x.shape[n_batch_axes:]))
    if W.ndim == 2 and flat[1] != W.shape[1]:
        raise InvalidType(
            f"linear: expected x with {W.shape[1]} elements per sample for W of "
            f"{W.shape}, got {flat[1]}: x of {x.shape} with n_batch_axes={n_batch_axes}"
            f"{_hint(x.shape, W.shape[1])}"
        )
    y = _core.ops.linear(_core.ops.reshape(x, flat), W, b)
    return y if n_batch_axes == 1 else _core.ops.reshape(y, (*batch, y.shape[1]))


def _hint(shape: tuple[int, ...], size: int) -> str:
    """Which n_batch_axes would fit, if one does."""
    for axes in range(1, len(shape)):
        if math.prod(shape[axes:]) == size:
            return f"; n_batch_axes={axes} would fit"
    return ""


def bilinear(
    e1: ArrayLike,
    e2: ArrayLike,
    W: ArrayLike,
    V1: ArrayLike | None = None,
    V2: ArrayLike | None = None,
    b: ArrayLike | None = None,
) -> Variable:
    """``e1 W e2 + e1 V1 + e2 V2 + b``; axes after the first of e1 and e2 count as one.

    Shapes:
        e1: (N, J)
        e2: (N, K)
        W: (J, K, L)
        V1: (J, L)
        V2: (K, L)
        b: (L,)
        return: (N, L)

    Raises:
        ValueError: some but not all of V1, V2 and b are given.
        InvalidType: shapes or dtypes do not fit.

    Source: Socher et al., Reasoning with neural tensor networks, 2013.
    """
    extra = [v for v in (V1, V2, b) if v is not None]
    if len(extra) not in (0, 3):
        raise ValueError("bilinear: expected all of V1, V2 and b, or none")
    called = "e1, e2, W, V1, V2 and b" if extra else "e1, e2 and W"
    check_floats("bilinear", e1, e2, W, *extra, called=called)
    check_shape("bilinear", bool(e1.ndim and e2.ndim), "(N, J) and (N, K)", e1, e2)
    ops = _core.ops
    n = len(e1)
    e1, e2 = (ops.reshape(e, (len(e), math.prod(e.shape[1:]))) for e in (e1, e2))
    j, k = e1.shape[1], e2.shape[1]
    fits = W.ndim == 3 and W.shape[:2] == (j, k) and len(e2) == n
    check_shape("bilinear", fits, "(N, J), (N, K) and (J, K, L)", e1, e2, W)
    pairs = ops.multiply(ops.reshape(e1, (n, j, 1)), ops.reshape(e2, (n, 1, k)))
    W = ops.reshape(W, (j * k, W.shape[2]))
    y = ops.matmul(ops.reshape(pairs, (n, j * k)), W)
    if V1 is None or V2 is None or b is None:
        return y
    return y + ops.matmul(e1, V1) + ops.matmul(e2, V2) + b
