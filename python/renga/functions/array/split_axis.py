"""Arrays split into pieces and slices."""

from __future__ import annotations

import numbers
from typing import Any, Literal, overload

from renga import _core
from renga.core.configuration import config
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.check import check_axis
from renga.utils.extents import check_integer
from renga.utils.type_check import InvalidType

# Sections of an empty axis: all are equal, and each takes memory.
_MOST_EMPTY = 2**16


@overload
def split_axis(
    x: ArrayLike,
    indices_or_sections: Extents,
    axis: int,
    force_tuple: Literal[True] = True,
) -> tuple[Variable, ...]: ...
@overload
def split_axis(
    x: ArrayLike, indices_or_sections: Extents, axis: int, force_tuple: bool
) -> tuple[Variable, ...] | Variable: ...
def split_axis(
    x: ArrayLike, indices_or_sections: Extents, axis: int, force_tuple: bool = True
) -> tuple[Variable, ...] | Variable:
    """``x`` split before each of the indices, or into equal sections.

    Without ``force_tuple`` a single section is returned without a tuple.

    Raises:
        TypeError: neither a number nor a sequence of them.
        ValueError: no section at all, or, in debug mode, indices that do not rise.
        InvalidType: there is no such axis, or it cannot be split so.
    """
    cuts = indices_or_sections
    axis = check_axis("split_axis", x, axis)
    extent = x.shape[axis]
    # An int is found without a search of its classes.
    is_number = type(cuts) is int or isinstance(cuts, numbers.Integral)
    if is_number or getattr(cuts, "ndim", 1) == 0:
        cuts = _equal_cuts(extent, check_integer("split_axis", "sections", cuts))
    elif hasattr(cuts, "__iter__"):
        cuts = _checked_cuts(x.shape, axis, cuts)
    else:
        raise TypeError(f"split_axis: expected indices or a number, got {type(cuts)}")
    ys = tuple(_core.ops.split_axis(x, cuts, axis))
    return ys if force_tuple or len(ys) > 1 else ys[0]


def _checked_cuts(shape: tuple[int, ...], axis: int, given: Any) -> list[int]:
    extent = shape[axis]
    cuts = [check_integer("split_axis", "an index", cut) for cut in given]
    cuts = [cut + extent if cut < 0 else cut for cut in cuts]
    for cut in cuts:
        if not 0 <= cut <= extent:
            raise InvalidType(f"split_axis: expected indices of {shape}, got {cut}")
    if config.debug and cuts != sorted(cuts):
        raise ValueError(f"split_axis: expected rising indices, got {cuts}")
    return cuts


def _equal_cuts(extent: int, sections: int) -> list[int]:
    if sections < 1:
        raise ValueError(f"split_axis: expected at least 1 section, got {sections}")
    if extent % sections or sections > max(extent, _MOST_EMPTY):
        raise InvalidType(
            f"split_axis: expected an extent divisible by {sections}, got {extent}"
        )
    return [extent // sections * i for i in range(1, sections)]


def separate(x: ArrayLike, axis: int = 0) -> tuple[Variable, ...]:
    """The slices of ``x`` along an axis, without that axis.

    Raises:
        InvalidType: there is no such axis.
    """
    return tuple(_core.ops.separate(x, check_axis("separate", x, axis)))
