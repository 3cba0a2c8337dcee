"""An array cut along an axis."""

from __future__ import annotations

import numbers
from typing import Any

from renga import _core
from renga.utils.type_check import InvalidType
from renga.variable import Variable


def split_axis(
    x: Any, indices_or_sections: Any, axis: int, force_tuple: bool = True
) -> tuple[Variable, ...] | Variable:
    """``x`` cut before each of the indices, or into so many equal sections.

    Without ``force_tuple`` a single piece comes as it is.

    Raises:
        TypeError: neither a number nor a sequence of them.
        ValueError: no section at all.
        InvalidType: there is no such axis, or it cannot be cut so.
    """
    cuts = indices_or_sections
    if not -x.ndim <= axis < x.ndim:
        raise InvalidType(f"split_axis: expected an axis of {x.shape}, got {axis}")
    if isinstance(cuts, numbers.Integral):
        cuts = _equal_cuts(x.shape[axis], int(cuts))
    elif not hasattr(cuts, "__iter__"):
        raise TypeError(f"split_axis: expected indices or a number, got {type(cuts)}")
    extent = x.shape[axis]
    cuts = [cut + extent if cut < 0 else cut for cut in cuts]
    ys = tuple(_core.ops.split_axis(x, cuts, axis))
    return ys if force_tuple or len(ys) > 1 else ys[0]


def _equal_cuts(extent: int, sections: int) -> list[int]:
    if sections < 1:
        raise ValueError(f"split_axis: expected at least 1 section, got {sections}")
    if extent % sections:
        raise InvalidType(
            f"split_axis: expected an extent divisible by {sections}, got {extent}"
        )
    return [extent // sections * i for i in range(1, sections)]
