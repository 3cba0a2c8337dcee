"""Elements added at the ends of axes."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.functions.array.get_item import get_item
from renga.variable import Variable

# Modes that fill with elements of the array, found by padding its indices.
_COPYING = ("edge", "reflect", "symmetric", "wrap")


def pad(x: Any, pad_width: Any, mode: str, **keywords: Any) -> Variable:
    """``x`` with elements added at both ends of every axis, as ``numpy.pad``.

    Modes are constant (0, or ``constant_values``), edge, reflect, symmetric and wrap.

    Raises:
        ValueError: another mode, or a negative width.
        TypeError: widths that are no integers.
    """
    if mode in _COPYING:
        return _copying_pad(x, pad_width, mode, keywords)
    if mode != "constant":
        raise ValueError(
            f"pad: expected a mode of {('constant', *_COPYING)}, got {mode!r}"
        )
    widths = numpy.asarray(pad_width)
    if widths.dtype.kind not in "iu":
        raise TypeError(f"pad: expected integer widths, got {pad_width}")
    if (widths < 0).any():
        raise ValueError(f"pad: expected widths of at least 0, got {pad_width}")
    widths = numpy.broadcast_to(widths, (x.ndim, 2))
    values = keywords.pop("constant_values", 0)
    if keywords:
        raise TypeError(f"pad: expected constant_values, got {sorted(keywords)}")
    before, after = widths[:, 0].tolist(), widths[:, 1].tolist()
    if numpy.ndim(values) == 0:
        return _core.ops.pad(x, before, after, float(values))
    inside = numpy.zeros(x.shape, x.dtype)
    border = numpy.pad(inside, widths, "constant", constant_values=values)
    return _core.ops.add(_core.ops.pad(x, before, after, 0.0), border)


def _copying_pad(
    x: Any, pad_width: Any, mode: Any, keywords: dict[str, Any]
) -> Variable:
    widths = numpy.broadcast_to(pad_width, (x.ndim, 2))
    for axis, width in enumerate(widths):
        source = numpy.pad(numpy.arange(x.shape[axis]), width, mode, **keywords)
        x = get_item(x, (slice(None),) * axis + (source,))
    return x
