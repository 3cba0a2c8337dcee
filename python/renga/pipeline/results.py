"""Results and reports of a model, put together from those of its micro-batches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from renga.variable import Variable, as_array


def join(ys: Sequence[Any], sizes: Sequence[int]) -> Any:
    """The result for a batch from those for its micro-batches.

    Arrays are put together along axis 0, those without axes are averaged by samples,
    and tuples, lists and dictionaries are joined item by item.
    """
    first = ys[0]
    if isinstance(first, dict):
        return {key: join([y[key] for y in ys], sizes) for key in first}
    if isinstance(first, (tuple, list)):
        return type(first)(join(items, sizes) for items in zip(*ys))
    if getattr(first, "ndim", 0) > 0:
        return numpy.concatenate(ys)
    if isinstance(first, (float, numpy.generic, numpy.ndarray)):
        mean = numpy.average([float(y) for y in ys], weights=sizes)
        return numpy.asarray(mean, getattr(first, "dtype", numpy.float64))
    return first


def arrays_of(y: Any) -> Any:
    """``y`` with arrays in place of Variables, None in place of those elsewhere."""
    if isinstance(y, Variable):
        return None if y.is_meta else y.array
    if isinstance(y, dict):
        return {key: arrays_of(item) for key, item in y.items()}
    if isinstance(y, (tuple, list)):
        return type(y)(map(arrays_of, y))
    return y


def is_complete(y: Any) -> bool:
    """Whether this rank has all arrays of a result of ``arrays_of``."""
    if isinstance(y, dict):
        return all(map(is_complete, y.values()))
    if isinstance(y, (tuple, list)):
        return all(map(is_complete, y))
    return y is not None


def variables_of(y: Any) -> Any:
    """``y`` with Variables in place of arrays."""
    if isinstance(y, numpy.ndarray):
        return Variable(y, requires_grad=False)
    if isinstance(y, dict):
        return {key: variables_of(item) for key, item in y.items()}
    if isinstance(y, (tuple, list)):
        return type(y)(map(variables_of, y))
    return y


def means(
    observations: Mapping[int, Mapping[str, Any]], sizes: Sequence[int]
) -> dict[str, float]:
    """The means over samples of what micro-batches of one or more batches reported.

    Args:
        observations: of micro-batches by their numbers.
        sizes: numbers of samples of the micro-batches of a batch.
    """
    values: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for i, observation in observations.items():
        for key, value in observation.items():
            values[key].append((float(as_array(value)), sizes[i % len(sizes)]))
    return {
        key: float(numpy.average([v for v, _ in pairs], weights=[n for _, n in pairs]))
        for key, pairs in values.items()
    }
