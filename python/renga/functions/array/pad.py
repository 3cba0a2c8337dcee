"""Elements added at the ends of axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_arrays
from renga.utils.extents import check_count, check_memory

# Modes that fill with elements of the array.
_COPYING = ("edge", "reflect", "symmetric", "wrap")


def pad(
    x: ArrayLike,
    pad_width: int | Sequence[int | Sequence[int]],
    mode: str,
    **keywords: Any,
) -> Variable:
    """``x`` with elements added at both ends of every axis, as ``numpy.pad``.

    Modes are constant (0, or ``constant_values``), edge, reflect, symmetric and wrap.

    Raises:
        ValueError: another mode, or a negative width.
        TypeError: widths that are no integers.
        MemoryError: the result would not fit in memory.
    """
    check_arrays("pad", x)
    if mode not in ("constant", *_COPYING):
        raise ValueError(
            f"pad: expected a mode of {('constant', *_COPYING)}, got {mode!r}"
        )
    widths = _checked_widths(x, pad_width)
    before, after = [w[0] for w in widths], [w[1] for w in widths]
    if mode in _COPYING:
        if keywords:
            raise ValueError(f"pad: expected no options of {mode}, got {keywords}")
        return _core.ops.pad_by_copy(x, before, after, mode)
    values = keywords.pop("constant_values", 0)
    if keywords:
        raise TypeError(f"pad: expected constant_values, got {sorted(keywords)}")
    # The core takes the value as a float, which would round large integers.
    if numpy.ndim(values) == 0 and x.dtype.kind == "f":
        return _core.ops.pad(x, before, after, float(values))
    inside = numpy.zeros(x.shape, x.dtype)
    border = numpy.pad(inside, widths, "constant", constant_values=values)
    return _core.ops.add(_core.ops.pad(x, before, after, 0.0), border)


def _checked_widths(
    x: Any, pad_width: int | Sequence[int | Sequence[int]]
) -> list[tuple[int, int]]:
    """Elements before and after each axis."""
    given: Any = pad_width
    is_plain = type(given) in (tuple, list) and 0 < len(given) == x.ndim
    if not (is_plain and all(map(_is_pair, given))):
        # Objects, so that NumPy neither wraps nor rounds large integers.
        given = numpy.asarray(pad_width, object)
        if given.size == 0:
            raise TypeError(f"pad: expected integer widths, got {pad_width}")
        try:
            given = numpy.broadcast_to(given, (x.ndim, 2))
        except ValueError:
            raise ValueError(
                f"pad: expected a width, a pair of them or {x.ndim} pairs, one for "
                f"each axis, got {pad_width}"
            ) from None
    widths = [
        (check_count("pad", "widths", a, 0), check_count("pad", "widths", b, 0))
        for a, b in given
    ]
    padded = (a + extent + b for extent, (a, b) in zip(x.shape, widths))
    check_memory("pad", padded, x.dtype)
    return widths


def _is_pair(width: Any) -> bool:
    return type(width) in (tuple, list) and len(width) == 2
