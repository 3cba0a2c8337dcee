"""Options of functions on images."""

from __future__ import annotations

from typing import Any

from renga.utils.extents import is_number


def as_pair(x: Any) -> tuple[Any, Any]:
    """(rows, columns) of an option given as one number for both or as a pair.

    Raises:
        ValueError: there are more or less than two.
    """
    if is_number(x):
        return x, x
    pair = tuple(x)
    if len(pair) != 2:
        raise ValueError(f"expected a number or a pair (rows, columns), got {x!r}")
    return pair
