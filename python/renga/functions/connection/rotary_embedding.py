"""Positions as rotations."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.core.variable import Variable, as_variable
from renga.functions.check import check_floats
from renga.utils.extents import check_integer, check_real
from renga.utils.type_check import InvalidType

_MOST = 2**31  # the angles of larger positions are no longer exact


def rotary_embedding(
    x: Any, position: int = 0, base: float = 10000.0, step: int = 1
) -> Variable:
    """Rotates pairs of features by angles proportional to their position.

    Features i and i + D / 2 at position p are a pair, rotated by the angle
    ``p base^(-2 i / D)``. Products of rotated queries and keys depend on the distance
    of their positions alone.

    Args:
        x: queries or keys.
        position: that of the first ones.
        base: determines the smallest angle.
        step: how far one position is behind the one before.

    Shapes:
        x, y: (…, L, D), D even

    Raises:
        TypeError: ``position`` or ``step`` is not an integer, or ``base`` not a number.
        InvalidType: ``x`` is not of floats, or D is odd.
        ValueError: ``base`` is not positive, or ``position`` is 2^31 or more.

    Source: Su et al., RoFormer: enhanced transformer with rotary position embedding,
    2021.
    """
    check_floats("rotary_embedding", x)
    if x.ndim < 2 or x.shape[-1] % 2:
        raise InvalidType(
            f"rotary_embedding: expected (…, L, D) with an even D, got {x.shape}"
        )
    position = check_integer("rotary_embedding", "position", position)
    step = check_integer("rotary_embedding", "step", step)
    base = check_real("rotary_embedding", "base", base)
    if abs(position) >= _MOST:
        raise ValueError(
            f"rotary_embedding: expected a position below 2**31, got {position}"
        )
    if not base > 0:
        raise ValueError(f"rotary_embedding: expected a positive base, got {base}")
    x = as_variable(x)
    ops, half = _core.ops, x.shape[-1] // 2
    positions = position + step * numpy.arange(x.shape[-2], dtype=numpy.float64)
    rates = base ** (-numpy.arange(half) / max(half, 1))
    angles = positions[:, None] * rates
    tables = numpy.cos(angles).astype(x.dtype), numpy.sin(angles).astype(x.dtype)
    cos, sin = x.device.send(tables)
    first, second = x[..., :half], x[..., half:]
    return ops.concat(
        [first * cos - second * sin, second * cos + first * sin], x.ndim - 1
    )
