"""Weighted mean and standard deviation of a stream of values."""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Mapping
from typing import Any

import numpy

from renga import _core
from renga.backends import cuda
from renga.core.serializer import AbstractSerializer, Deserializer
from renga.core.types import Operand
from renga.core.variable import Variable, as_array, as_variable


class Summary:
    """Weighted mean and standard deviation, in float64, of scalars or of arrays."""

    def __init__(self) -> None:
        self._x: Any = 0.0
        self._x2: Any = 0.0
        self._n = 0.0

    def add(self, value: Operand, weight: Operand = 1) -> None:
        """Counts ``value`` ``weight`` times; TypeError unless both are numbers."""
        value, weight = _float64(value), _float64(weight)
        self._x += weight * value
        self._x2 += weight * value * value
        self._n += weight

    def compute_mean(self) -> Any:
        """The weighted mean; ZeroDivisionError when nothing was added."""
        self._to_host()
        if not self._n:
            raise ZeroDivisionError("Summary: nothing was added")
        return self._x / self._n

    def make_statistics(self) -> tuple[Any, Any]:
        """The weighted mean and the standard deviation of the population."""
        mean = self.compute_mean()
        variance = self._x2 / self._n - mean * mean
        return mean, numpy.sqrt(numpy.maximum(variance, 0))  # rounding can undershoot

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the sums, or warns if they were not saved."""
        self._to_host()
        names = ("_x", "_x2", "_n")
        try:
            self._x, self._x2, self._n = (
                serializer(name, getattr(self, name)) for name in names
            )
        except KeyError:
            warnings.warn("Summary: the sums were not saved", stacklevel=2)

    def _to_host(self) -> None:
        """Waits for sums of a device's numbers, which are computed there."""
        self._x, self._x2, self._n = map(_on_host, (self._x, self._x2, self._n))


class DictSummary:
    """A Summary for each key of the dictionaries added.

    >>> from renga import DictSummary
    >>> summary = DictSummary()
    >>> for loss in (1.0, 2.0, 6.0):
    ...     summary.add({"loss": loss})
    >>> float(summary.compute_mean()["loss"])
    3.0
    """

    def __init__(self) -> None:
        self._summaries: dict[str, Summary] = {}

    def add(self, d: Mapping[str, object]) -> None:
        """Adds the scalars of ``d``, or (scalar, weight) pairs; ignores the rest.

        Raises:
            TypeError: a value is a string.
            ValueError: a weight is not a scalar.
        """
        for key, value in d.items():
            weight: Any = 1
            if isinstance(value, tuple):
                value, weight = as_array(value[0]), as_array(value[1])
                if not is_scalar(weight):
                    raise ValueError(
                        f"DictSummary: the weight of {key} is not a scalar"
                    )
            number: Any = as_array(value)
            if is_scalar(number):
                self._summaries.setdefault(key, Summary()).add(number, weight)

    def compute_mean(self) -> dict[str, Any]:
        """The mean under each key."""
        return {key: s.compute_mean() for key, s in self._summaries.items()}

    def make_statistics(self) -> dict[str, Any]:
        """The mean under each key and the standard deviation under ``key.std``."""
        statistics = {}
        for key, summary in self._summaries.items():
            statistics[key], statistics[f"{key}.std"] = summary.make_statistics()
        return statistics

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the names, as JSON, and the summary of each.

        Warns, and has none, if the names were not saved.
        """
        try:
            names = json.loads(serializer("_names", json.dumps(list(self._summaries))))
        except KeyError:
            warnings.warn("DictSummary: the names were not saved", stacklevel=2)
            names = []
        if isinstance(serializer, Deserializer):
            serializer.on_failure(
                functools.partial(vars(self).update, vars(self).copy())
            )
            self._summaries = {name: Summary() for name in names}
        for index, name in enumerate(names):
            self._summaries[name].serialize(serializer["_summaries"][str(index)])


def is_scalar(value: object) -> bool:
    """Whether an observed value is a number, or an array without axes."""
    return bool(numpy.isscalar(value)) or getattr(value, "ndim", None) == 0


def _float64(value: Any) -> Any:
    if isinstance(value, cuda.ndarray):
        return _core.ops.cast(as_variable(value), numpy.dtype(numpy.float64))
    try:
        array = numpy.asarray(value, numpy.float64)
    except ValueError:
        raise TypeError(f"Summary: expected a number, got {value!r}") from None
    return array if array.ndim else float(array)


def _on_host(total: Any) -> Any:
    return _float64(cuda.to_cpu(total.array)) if isinstance(total, Variable) else total
