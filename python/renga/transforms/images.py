"""What transforms have in common: checks, and images that are views of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

import numpy

from renga.core.types import Array
from renga.utils.argument import check_count, check_number
from renga.utils.type_check import InvalidType

Images = Union[Sequence[numpy.ndarray], numpy.ndarray]  # (C, H, W) each


class OfImages:
    """A transform of each image alone; most images that it gives are views.

    So transforms in a row copy an image once, and images of several sizes can become
    those of a batch.
    """

    def of_images(self, images: Images) -> list[numpy.ndarray]:
        """New images (C, H, W), which may share memory with those that are given."""
        raise NotImplementedError

    def __call__(self, x: Array) -> numpy.ndarray:
        """The new images, as a batch."""
        x = check_images(self, x)
        if len(x) == 0:
            return self(numpy.zeros_like(x, shape=(1, *x.shape[1:])))[:0]
        return numpy.stack(self.of_images(x))


def check_images(transform: object, x: Array) -> numpy.ndarray:
    """``x`` as an array; InvalidType unless it has numbers and axes (N, C, H, W)."""
    name = type(transform).__name__
    array = as_batch(name, x)
    if array.ndim == 0:
        raise InvalidType(f"{name}: expected images of (N, C, H, W), got {x!r}")
    if array.ndim != 4 or array.dtype.kind not in "biuf":
        raise InvalidType(
            f"{name}: expected images of (N, C, H, W), got an array of {array.dtype} "
            f"{array.shape}"
        )
    return array


def as_batch(name: str, x: Array) -> numpy.ndarray:
    """``x`` as an array; InvalidType if it has examples of different shapes."""
    try:
        return numpy.asarray(x)
    except ValueError as error:
        raise InvalidType(
            f"{name}: expected examples of one shape, got {error}"
        ) from error


def check_probability(transform: object, p: float) -> float:
    """``p``; an error unless it is a number from 0 to 1."""
    name = type(transform).__name__
    check_number(f"{name}: p", p)
    if not 0 <= p <= 1:
        raise ValueError(f"{name}: expected a probability from 0 to 1, got {p}")
    return p


def check_sizes(transform: object, size: object) -> tuple[int, int]:
    """(height, width) of an integer or a pair; an error unless both are positive."""
    name = type(transform).__name__
    pair = tuple(size) if isinstance(size, (tuple, list)) else (size, size)
    if len(pair) != 2:
        raise ValueError(
            f"{name}: expected a positive size or a pair of them, got {size}"
        )
    for each in pair:
        check_count(f"{name}: size", each)
    return int(pair[0]), int(pair[1])


def check_range(what: str, value: object) -> tuple[float, float]:
    """(least, most); an error unless these are two positive numbers in this order."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise TypeError(f"{what}: expected the least and the most, got {value!r}")
    low, high = value
    for each in (low, high):
        check_number(what, each)
    if not 0 < low <= high < float("inf"):
        raise ValueError(f"{what}: expected positive numbers in order, got {value}")
    return low, high
