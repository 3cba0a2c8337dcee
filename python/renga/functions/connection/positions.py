"""Positions of tokens: as rows that are learned, and as rotations."""

from __future__ import annotations

import functools
from typing import Any

import numpy

from renga import _core
from renga.core.around_call import overridable
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_variable
from renga.functions.check import check_arrays, check_floats
from renga.utils.extents import check_integer, check_real
from renga.utils.type_check import InvalidType


@overridable
def position_embedding(W: ArrayLike, x: ArrayLike, position: int = 0) -> Variable:
    """The rows of ``W`` for the tokens of ``x``, of which the first is at ``position``.

    In a model that is parallel by ``sequence``, the rows for this rank's tokens.

    Shapes:
        W: (positions, E)
        x: (N, L, …), of which the length counts
        result: (L, E)

    Raises:
        TypeError: ``position`` is not an integer.
        InvalidType: ``x`` has no axis 1, or there are fewer rows.

    Source: Radford et al., Improving language understanding by generative
    pre-training, 2018.
    """
    check_arrays("position_embedding", W, x)
    position = check_integer("position_embedding", "position", position)
    shape = x.shape
    if len(shape) < 2 or not 0 <= position <= len(W) - shape[1]:
        raise InvalidType(
            f"position_embedding: expected x of (N, L, …), L at most {len(W)} less "
            f"position {position}, got {shape}"
        )
    return as_variable(W)[position : position + shape[1]]


_MOST = 2**31  # the angles of larger positions are no longer exact


def rotary_embedding(
    x: ArrayLike, position: int = 0, base: float = 10000.0, step: int = 1
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
    length, width = x.shape[-2:]
    x = as_variable(x)
    tables = _tables(length, width, position, base, step, x.dtype, x.device)
    if x.ndim > 3:
        return _core.ops.rotate_pairs(x, *tables)
    planes = _core.ops.reshape(x, (1,) * (4 - x.ndim) + x.shape)
    return _core.ops.reshape(_core.ops.rotate_pairs(planes, *tables), x.shape)


@functools.lru_cache(maxsize=8)
def _tables(
    length: int,
    width: int,
    position: int,
    base: float,
    step: int,
    dtype: Any,
    device: Any,
) -> Any:
    """The cosines and sines of the angles of each position and pair."""
    half = width // 2
    positions = position + step * numpy.arange(length, dtype=numpy.float64)
    angles = positions[:, None] * base ** (-numpy.arange(half) / max(half, 1))
    tables = numpy.cos(angles).astype(dtype), numpy.sin(angles).astype(dtype)
    return tuple(map(as_variable, device.send(tables)))
