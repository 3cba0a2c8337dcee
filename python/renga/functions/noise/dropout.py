"""Random zeros."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy

from renga import _core
from renga._core import Variable
from renga.core.configuration import config
from renga.core.types import Array, ArrayLike
from renga.core.variable import as_variable
from renga.functions.array.cast import promoted
from renga.functions.check import check_arrays
from renga.functions.noise.seed import draw_seed
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
