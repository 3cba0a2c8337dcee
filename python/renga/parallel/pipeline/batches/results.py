"""Results and reports of a model, put together from those of its micro-batches."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy

from renga.core.backend import get_array_types
from renga.core.configuration import config
from renga.core.function_node import FunctionNode
from renga.core.types import Array, Grads, Indexes
from renga.core.variable import Variable, as_array, as_variable
from renga.utils.containers import leaves, map_items, map_leaves


class _Place(enum.Enum):
    """A member is the same object after it has been sent."""

    ELSEWHERE = enum.auto()


ELSEWHERE = _Place.ELSEWHERE
"""Stands for an array that another rank has."""


def arrays_of(y: object) -> Any:
    """``y`` with arrays in place of Variables, ELSEWHERE for those of other ranks."""

    def array_of(x: Variable) -> Any:
        if not isinstance(x, Variable):
            return x
        return ELSEWHERE if x.is_meta else x.array

    return map_leaves(array_of, y)


def merged(ys: Sequence[object]) -> Any:
    """A result of which each of ``ys`` has some of the arrays."""

    def present(*values: object) -> Any:
        return next((y for y in values if y is not ELSEWHERE), ELSEWHERE)

    return map_leaves(present, *ys)


def is_complete(y: object) -> bool:
    """Whether no array is elsewhere."""
    return all(leaf is not ELSEWHERE for leaf in leaves(y))


def variables_of(y: object) -> Any:
    """``y`` with Variables, which have no gradient, in place of arrays."""
    arrays: Any = get_array_types()
    start = Variable(numpy.zeros(1), requires_grad=True)

    def variable_of(x: Array) -> Any:
        if not isinstance(x, arrays):
            return x
        is_float = x.dtype.kind == "f" and config.enable_backprop and config.train
        return _NoGradient().apply((x, start))[0] if is_float else as_variable(x)

    return map_leaves(variable_of, y)


class _NoGradient(FunctionNode):
    """The first input; a backward pass raises an error, instead of doing nothing."""

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        return inputs[:1]

    def backward(self, target_input_indexes: Indexes, grad_outputs: Grads) -> Grads:
        raise RuntimeError(
            "Pipeline: expected a backward pass by train_batch() or a PipelineUpdater, "
            "got one from the result of a direct call, which has no graph"
        )


def join(
    ys: Sequence[Any],
    sizes: Sequence[int],
    weights: Sequence[float] | None = None,
    axis: int = 0,
) -> Any:
    """The result for a batch from those for its micro-batches.

    Arrays are put together along the axis of the samples; floats, and arrays without
    axes, are added up. Containers are joined item by item, but lists with an item for
    each sample are put together. What is the same for all micro-batches, and has no
    axis of samples, stays as it is.

    Args:
        ys: of the micro-batches.
        sizes: their numbers of samples.
        weights: by which floats are multiplied; by default those of a mean over
            samples.
        axis: of the samples, or 0 in arrays where that axis is another one.

    Raises:
        ValueError: the results are built in different ways.
        TypeError: something that is no array or float differs.
    """
    if weights is None:
        weights = [size / sum(sizes) for size in sizes]
    if len(ys) == 1:
        return ys[0]
    if _are_lists_of_samples(ys, sizes, axis):
        return type(ys[0])([item for y in ys for item in y])
    if isinstance(ys[0], (tuple, list, dict)):
        return map_items(lambda *items: join(items, sizes, weights, axis), *ys)
    return _join_leaves(ys, sizes, weights, axis)


def _are_lists_of_samples(ys: Sequence[Any], sizes: Sequence[int], axis: int) -> bool:
    are_lists = all(isinstance(y, list) and len(y) == n for y, n in zip(ys, sizes))
    return are_lists and not all(
        _has_samples(item, size, axis) for y, size in zip(ys, sizes) for item in y
    )


def _has_samples(y: Any, size: int, axis: int) -> bool:
    """Whether it is an array with that number of samples along the axis."""
    return getattr(y, "ndim", 0) > axis and y.shape[axis] == size


def _join_leaves(
    ys: Sequence[Any], sizes: Sequence[int], weights: Sequence[float], axis: int
) -> Any:
    first = ys[0]
    if getattr(first, "ndim", 0) > 0:
        pairs = list(zip(ys, sizes))
        if not all(_has_samples(y, size, axis) for y, size in pairs):
            axis = 0
            if not all(_has_samples(y, size, 0) for y, size in pairs) and _are_same(ys):
                return first
        return numpy.concatenate(ys, axis)
    if is_number(first):
        total = sum(weight * float(y) for weight, y in zip(weights, ys))
        return numpy.asarray(total, getattr(first, "dtype", numpy.float64))
    if any(type(y) is not type(first) or y != first for y in ys):
        raise TypeError(
            "pipeline: expected results of micro-batches that are arrays and floats, "
            f"or equal, got {first!r:.60} and others"
        )
    return first


def is_number(y: object) -> bool:
    """Whether it is a float, or an array without axes."""
    if isinstance(y, (numpy.generic, numpy.ndarray)):
        return y.ndim == 0
    return isinstance(y, float)


def _are_same(ys: Sequence[Any]) -> bool:
    return all(y.shape == ys[0].shape and (y == ys[0]).all() for y in ys)


def observation_of(
    observations: Iterable[tuple[Mapping[str, object], float]],
    is_sum: Callable[[str], bool],
) -> dict[str, float]:
    """What the micro-batches of one or more batches reported, put together.

    Args:
        observations: of micro-batches, with their weights in means.
        is_sum: whether the values of a name are added up; others are averaged.
    """
    values: dict[str, list[tuple[Any, float]]] = {}
    for observation, weight in observations:
        for key, value in observation.items():
            values.setdefault(key, []).append((as_array(value), weight))
    return {key: _reduced(pairs, is_sum(key)) for key, pairs in values.items()}


def _reduced(pairs: Sequence[tuple[Any, float]], is_sum: bool) -> Any:
    """The sum or mean of numbers, or of arrays of one shape; else the last one."""
    last = pairs[-1][0]
    total = 1.0 if is_sum else sum(weight for _, weight in pairs)
    shapes = {getattr(value, "shape", ()) for value, _ in pairs}
    is_number = isinstance(last, (int, float, numpy.generic, *get_array_types()))
    if not is_number or len(shapes) > 1 or total == 0:
        return last
    weighted = [(value, 1.0 if is_sum else weight) for value, weight in pairs]
    if shapes != {()}:
        return sum(value * (weight / total) for value, weight in weighted)
    return sum(float(value) * weight for value, weight in weighted) / total
