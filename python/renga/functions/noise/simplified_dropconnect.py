"""Fully connected layer with random zeros among its weights."""

from __future__ import annotations

import math

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.array.cast import cast_floats
from renga.functions.check import array_of, check_floats, check_shape
from renga.functions.noise.seed import generator
from renga.functions.on_host import on_host
from renga.utils.extents import check_real


@on_host
def simplified_dropconnect(
    x: ArrayLike,
    W: ArrayLike,
    b: ArrayLike | None = None,
    ratio: float = 0.5,
    train: bool = True,
    mask: ArrayLike | None = None,
    use_batchwise_mask: bool = True,
) -> Variable:
    """``x (m W)^T + b``, m being 0 with probability ``ratio``.

    Elsewhere m is ``1 / (1 - ratio)``. With ``use_batchwise_mask`` each sample has a
    mask of its own. ``mask`` sets which weights are kept. Without ``train`` no
    weight is dropped.

    Shapes:
        x: (N, …) with I elements per sample
        W: (O, I)
        b: (O,)
        mask: (N, O, I), or (O, I) without ``use_batchwise_mask``
        return: (N, O)

    Raises:
        TypeError: the ratio is not a number.
        ValueError: the ratio is not in [0, 1).
        InvalidType: shapes or dtypes do not fit.

    Source: Wan et al., Regularization of neural networks using DropConnect, 2013.
    """
    ratio = check_real("simplified_dropconnect", "ratio", ratio)
    if not 0 <= ratio < 1:
        raise ValueError(
            f"simplified_dropconnect: expected a ratio in [0, 1), got {ratio}"
        )
    W = cast_floats("simplified_dropconnect", x, W)[0]
    check_floats("simplified_dropconnect", x, W)
    fits = x.ndim >= 2 and W.ndim == 2 and math.prod(x.shape[1:]) == W.shape[1]
    check_shape("simplified_dropconnect", fits, "(N, I) and (O, I)", x, W)
    ops, n = _core.ops, len(x)
    x = ops.reshape(x, (n, W.shape[1]))
    if not train:
        return ops.linear(x, W, b)
    shape = (n, *W.shape) if use_batchwise_mask else W.shape
    if mask is None:
        mask = generator(x).random_sample(shape) >= ratio
    mask = array_of("simplified_dropconnect", "mask", mask)
    check_shape("simplified_dropconnect", mask.shape == shape, f"mask {shape}", mask)
    W = ops.multiply(W, mask.astype(W.dtype) / W.dtype.type(1 - ratio))
    if not use_batchwise_mask:
        return ops.linear(x, W, b)
    y = ops.reshape(ops.matmul(W, ops.reshape(x, (*x.shape, 1))), shape[:2])
    return y if b is None else ops.add(y, b)
