"""Checks that all transforms make of their input and options."""

from __future__ import annotations

from typing import Any

import numpy

from renga.utils.type_check import InvalidType


def check_images(transform: Any, x: Any) -> numpy.ndarray:
    """``x`` as an array; InvalidType unless it has the axes (N, C, H, W)."""
    x = numpy.asarray(x)
    if x.ndim != 4:
        raise InvalidType(
            f"{type(transform).__name__}: expected images of (N, C, H, W), got an "
            f"array of {x.shape}"
        )
    return x


def check_probability(transform: Any, p: float) -> float:
    """``p``; ValueError unless it is from 0 to 1."""
    if not 0 <= p <= 1:
        raise ValueError(
            f"{type(transform).__name__}: expected a probability from 0 to 1, got {p}"
        )
    return p


def check_sizes(transform: Any, size: Any) -> tuple[int, int]:
    """(height, width) of a number or a pair; ValueError unless both are positive."""
    pair = (size, size) if numpy.ndim(size) == 0 else tuple(size)
    if len(pair) != 2 or min(pair) < 1:
        raise ValueError(
            f"{type(transform).__name__}: expected a positive size or a pair of them, "
            f"got {size}"
        )
    return int(pair[0]), int(pair[1])
