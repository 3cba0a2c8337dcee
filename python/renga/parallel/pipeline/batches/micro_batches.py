"""Batches in parts."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from renga.core.types import Array, Shape
from renga.core.variable import Variable
from renga.utils import containers
from renga.utils.type_check import InvalidType


def split(
    inputs: Sequence[object], parts: int, axis: int = 0
) -> list[tuple[int, tuple[object, ...]]]:
    """Micro-batches of the arguments of a model, each with its number of samples.

    Arrays and Variables are split along an axis, in tuples, named tuples, lists and
    dictionaries, too. A list with an item for each sample is split by its items, and so
    is a tuple whose items are no arrays of that many samples; other arguments go to
    every micro-batch. The first micro-batches may have one sample more than the last
    ones, and there are fewer if there are too few samples: one if no argument has
    samples, as where the function closes over them.

    Args:
        inputs: the arguments.
        parts: the number of micro-batches.
        axis: of the samples; the last one of arrays that have fewer axes.

    Raises:
        InvalidType: the arguments have different numbers of samples, or no sample.
    """
    samples = number_of_samples(inputs, axis)
    if samples is None:
        return [(1, tuple(inputs))]
    return _slices(inputs, samples, axis, _bounds(inputs, samples, parts, axis))


def pairs(
    inputs: Sequence[object], parts: int, axis: int = 0
) -> list[tuple[object, ...]]:
    """The same micro-batches, two by two as one; the last one may be in two pairs.

    A single micro-batch is a pair by itself, and so is an empty batch.
    """
    samples = number_of_samples(inputs, axis)
    if not samples:
        return [tuple(inputs)]
    bounds = _bounds(inputs, samples, parts, axis)
    firsts = [*range(0, len(bounds) - 2, 2), max(len(bounds) - 2, 0)]
    ends = [(bounds[i][0], bounds[min(i + 1, len(bounds) - 1)][1]) for i in firsts]
    return [pair for _, pair in _slices(inputs, samples, axis, ends)]


def _bounds(
    inputs: Sequence[Any], samples: int, parts: int, axis: int
) -> list[tuple[int, int]]:
    """Where the samples of each micro-batch start and end."""
    if not all(_fits(x, samples, axis) for x in inputs):
        raise InvalidType(
            "pipeline: expected arguments with one number of samples, got "
            f"{[_describe(x) for x in inputs]}"
        )
    if samples == 0:
        raise InvalidType("pipeline: expected at least one sample, got an empty batch")
    parts = min(parts, samples)
    sizes = [samples // parts + (i < samples % parts) for i in range(parts)]
    ends = list(itertools.accumulate(sizes))
    return list(zip([0, *ends], ends))


def _slices(
    inputs: Sequence[Any], samples: int, axis: int, bounds: Iterable[tuple[int, int]]
) -> list[tuple[int, tuple[Any, ...]]]:
    return [
        (end - start, tuple([_part(x, samples, axis, start, end) for x in inputs]))
        for start, end in bounds
    ]


def signature(inputs: object) -> tuple[tuple[Shape, str] | None, ...]:
    """The shapes and dtypes of the arrays in containers."""
    return tuple(
        [
            (x.shape, str(x.dtype)) if _has_axes(x) else None
            for x in containers.leaves(inputs)
        ]
    )


def kinds(
    inputs: Sequence[float | Array | Mapping[str, Array]],
) -> frozenset[tuple[int, str] | None]:
    """The numbers of axes and the dtypes of the arrays in containers."""
    return frozenset(each and (len(each[0]), each[1]) for each in signature(inputs))


def number_of_samples(inputs: Sequence[object], axis: int) -> int | None:
    """That of the arguments that leave no doubt, or of the others; None for none."""
    sequences: list[Any] = [x for x in inputs if _is_sequence(x)]
    others = [x for x in inputs if not _is_sequence(x)]
    for size in _sizes(others, axis):
        return size
    for x in sequences:
        if isinstance(x, list) and _are_alike(x):
            return len(x)
    for x in sequences:
        sizes = set(_sizes(x, axis))
        return sizes.pop() if len(sizes) == 1 else len(x)
    return None


def _fits(x: Any, samples: int, axis: int) -> bool:
    """Whether an argument has that many samples, or none at all."""
    if _is_sequence(x) and _has_items_as_samples(x, samples, axis):
        return True
    if isinstance(x, list) and x and not set(_sizes(x, axis)):
        return False
    return set(_sizes(x, axis)) <= {samples}


def _has_items_as_samples(x: Sequence[Any], samples: int, axis: int) -> bool:
    if len(x) != samples or not _are_alike(x):
        return False
    return isinstance(x, list) or set(_sizes(x, axis)) != {samples}


def _are_alike(items: Sequence[Any]) -> bool:
    """Whether items may be one for each sample: of one kind, but for a length."""
    kinds = {
        (str(x.dtype), x.ndim, x.shape[1:]) if _has_axes(x) else type(x) for x in items
    }
    return len(kinds) <= 1


def _is_sequence(x: Any) -> bool:
    """Whether the items may be samples."""
    return isinstance(x, (list, tuple)) and not containers.is_named_tuple(x)


def _sizes(x: Any, axis: int) -> Iterator[int]:
    """The numbers of samples of the arrays in containers."""
    for leaf in containers.leaves(x):
        if _has_axes(leaf):
            yield leaf.shape[min(axis, leaf.ndim - 1)]


def _has_axes(x: Any) -> bool:
    return getattr(x, "ndim", 0) > 0


def _part(x: Any, samples: int, axis: int, start: int, end: int) -> Any:
    if _is_sequence(x) and _has_items_as_samples(x, samples, axis):
        return x[start:end]

    def part_of(leaf: Any) -> Any:
        if not _has_axes(leaf):
            return leaf
        return leaf[(slice(None),) * min(axis, leaf.ndim - 1) + (slice(start, end),)]

    return containers.map_leaves(part_of, x)


def _describe(x: Any) -> str:
    if isinstance(x, (numpy.ndarray, Variable)):
        return f"{x.dtype} {x.shape}"
    if isinstance(x, (list, tuple, dict)):
        return f"{type(x).__name__} of {len(x)}"
    return type(x).__name__
