"""Elements, weights and states that are dropped at random."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy

from renga import _core
from renga.core.configuration import config
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable, as_variable
from renga.functions.array.cast import cast_floats, promoted
from renga.functions.check import array_of, check_arrays, check_floats, check_shape
from renga.functions.noise.seed import draw_seed, generator
from renga.functions.on_host import on_host
from renga.utils.argument import parse_kwargs
from renga.utils.extents import check_real
from renga.utils.type_check import InvalidType


@overload
def dropout(
    x: ArrayLike,
    ratio: float = 0.5,
    *,
    mask: ArrayLike | None = None,
    return_mask: Literal[False] = False,
) -> Variable: ...
@overload
def dropout(
    x: ArrayLike,
    ratio: float = 0.5,
    *,
    mask: ArrayLike | None = None,
    return_mask: Literal[True],
) -> tuple[Variable, Array | None]: ...
def dropout(
    x: ArrayLike, ratio: float = 0.5, **kwargs: object
) -> Variable | tuple[Variable, Array | None]:
    """Sets elements to 0 with probability ``ratio`` and scales up the others.

    Does so only while ``config.train`` is true. The keyword ``mask`` sets the
    factors; with ``return_mask=True`` the result is ``(y, mask)``, with None as mask
    outside training.

    Raises:
        TypeError: the ratio is not a number.
        ValueError: the ratio is not in [0, 1).
        InvalidType: ``x`` is of integers, or the mask has another shape.

    Source: Hinton et al., Improving neural networks by preventing co-adaptation of
    feature detectors, 2012.
    """
    if not kwargs:  # the common case
        if not config.train:
            return as_variable(x)
        return _dropped(x, ratio, x)
    mask, return_mask = parse_kwargs(
        kwargs,
        ("mask", None),
        ("return_mask", False),
        train="dropout: expected using_config('train', …), got train",
    )
    if not config.train:
        return (as_variable(x), None) if return_mask else as_variable(x)
    check_arrays("dropout", x, *(() if mask is None else (mask,)))
    if mask is None:
        mask = _dropped(numpy.ones(x.shape, x.dtype), ratio, x).array
    elif mask.shape != x.shape:
        raise InvalidType(f"dropout: expected a mask of {x.shape}, got {mask.shape}")
    y = _core.ops.multiply(*promoted(x, mask))
    return (y, mask) if return_mask else y


def _dropped(values: Any, ratio: Any, x: Any) -> Any:
    """``values`` with random zeros, which are those of ``x``."""
    ratio = check_real("dropout", "ratio", ratio)
    if not 0 <= ratio < 1:
        raise ValueError(f"dropout: expected a ratio in [0, 1), got {ratio}")
    return (
        _core.ops.dropout(values, ratio, draw_seed(x)) if ratio else as_variable(values)
    )


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
    divisor = W.dtype.type(1 - ratio)
    if mask.dtype == bool:
        kept = ops.multiply(W, numpy.reciprocal(divisor))
        W = ops.where(mask, kept, numpy.zeros((), W.dtype))
    else:
        W = ops.multiply(W, mask.astype(W.dtype) / divisor)
    if not use_batchwise_mask:
        return ops.linear(x, W, b)
    y = ops.reshape(ops.matmul(W, ops.reshape(x, (*x.shape, 1))), shape[:2])
    return y if b is None else ops.add(y, b)


def zoneout(
    h: ArrayLike, x: ArrayLike, ratio: float = 0.5, **kwargs: object
) -> Variable:
    """Elements of ``h`` with probability ``ratio``, of ``x`` elsewhere.

    Outside training it is ``x``.

    Raises:
        TypeError: the ratio is not a number.
        ValueError: the ratio is not in [0, 1].
        InvalidType: shapes differ.

    Source: Krueger et al., Zoneout: regularizing RNNs by randomly preserving hidden
    activations, 2016.
    """
    parse_kwargs(kwargs, train="zoneout: expected using_config('train', …), got train")
    if not config.train:
        return as_variable(x)
    check_arrays("zoneout", h, x)
    check_shape("zoneout", h.shape == x.shape, "arrays of one shape", h, x)
    ratio = check_real("zoneout", "ratio", ratio)
    if not 0 <= ratio <= 1:
        raise ValueError(f"zoneout: expected a ratio in [0, 1], got {ratio}")
    return _core.ops.where(generator(h).random_sample(h.shape) < ratio, *promoted(h, x))
