"""Options of functions on images."""

from __future__ import annotations

from typing import Any


def as_pair(x: Any) -> tuple[int, int]:
    """(rows, columns) of an option given as one number for both or as a pair."""
    return tuple(x) if hasattr(x, "__getitem__") else (x, x)  # type: ignore
