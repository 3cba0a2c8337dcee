"""Batches in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga.utils.type_check import InvalidType
from renga.variable import Variable


def split(inputs: Sequence[Any], parts: int) -> list[tuple[int, tuple[Any, ...]]]:
    """Micro-batches of the arguments of a model, each with its number of samples.

    Arrays and Variables are split along axis 0, lists and tuples by their items; other
    arguments go to every micro-batch. The first micro-batches may have one sample more
    than the last ones, and there are fewer if there are too few samples.

    Raises:
        InvalidType: the arguments have different numbers of samples, or none.
    """
    sizes = {_samples(x) for x in inputs} - {None}
    if len(sizes) != 1:
        raise InvalidType(
            f"pipeline: expected arguments with one number of samples, got "
            f"{[_describe(x) for x in inputs]}"
        )
    samples = sizes.pop() or 0
    if samples == 0:
        raise InvalidType("pipeline: expected at least one sample, got an empty batch")
    parts = min(parts, samples)
    ends = numpy.cumsum(
        [samples // parts + (i < samples % parts) for i in range(parts)]
    )
    starts = [0, *ends[:-1]]
    return [
        (end - start, tuple([_part(x, start, end) for x in inputs]))
        for start, end in zip(starts, ends.tolist())
    ]


def _samples(x: Any) -> int | None:
    if isinstance(x, (list, tuple)):
        return len(x)
    return x.shape[0] if getattr(x, "ndim", 0) > 0 else None


def _part(x: Any, start: int, end: int) -> Any:
    return x if _samples(x) is None else x[start:end]


def _describe(x: Any) -> str:
    if isinstance(x, (numpy.ndarray, Variable)):
        return f"{x.dtype} {x.shape}"
    return f"{type(x).__name__} of {len(x)}" if _samples(x) else type(x).__name__
