"""Whether the numbers of a batch are the means or the sums of its micro-batches'."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from renga.parallel.pipeline.batches import results
from renga.utils.containers import leaves, map_leaves

REDUCTIONS = ("mean", "sum")
RESULT = ""  # the name of what a program returns, beside those of reported values

# The tolerance is a part of the largest number, by the size of the smallest floats that
# are computed with.
_TOLERANCES = {8: 1e-8, 4: 1e-4, 2: 5e-2}


class Reductions(NamedTuple):
    """How what a program returns and reports for a batch is made of that for parts.

    By names, those of REDUCTIONS that do. None does for a maximum, and both do where
    all numbers are zero.
    """

    possible: Mapping[str, frozenset[str]]

    @classmethod
    def common(cls, all_found: Iterable[Reductions]) -> Reductions:
        """Those that several batches allow."""
        possible = {RESULT: frozenset(REDUCTIONS)}
        for found in all_found:
            for name, own in found.possible.items():
                possible[name] = possible.get(name, own) & own
        return cls(possible)

    @property
    def is_open(self) -> bool:
        """Whether the result is found by each of them, as where it is zero."""
        return len(self.possible[RESULT]) > 1

    @property
    def of_result(self) -> str | None:
        """The only one of the result; None if there is none, or more than one."""
        own = self.possible[RESULT]
        return next(iter(own)) if len(own) == 1 else None

    def is_sum(self, name: str) -> bool:
        """Whether a reported value is added up; others are averaged."""
        return self.possible.get(name) == frozenset(["sum"])

    def unknown(self) -> str | None:
        """What cannot be put together, if there is something, as a text."""
        if self.of_result is None:
            return "a loss"
        names = [name for name, own in self.possible.items() if not own]
        return f"a reported value {names[0]!r}" if names else None


class EqualShares:
    """Checks that the means of all parts of an update are over one share of samples.

    Otherwise the number of samples is no weight for these means, as where labels are
    ignored in some parts.
    """

    def __init__(self) -> None:
        self._first: dict[int, tuple[Sequence[tuple[str, int]], float]] = {}

    def require(
        self, stage: int, counted: Sequence[tuple[str, int]], samples: float
    ) -> None:
        """Takes what a stage has computed for the next part.

        Args:
            stage: which runs the program.
            counted: names of functions, and of how many elements they took the mean.
            samples: how many samples the part's means are said to be over.

        Raises:
            ValueError: a mean is over another share of the samples than in other parts.
        """
        if samples == 0:
            return
        first, first_samples = self._first.setdefault(stage, (counted, samples))
        for (name, own), (_, other) in zip(counted, first):
            if own * first_samples != other * samples:
                raise ValueError(
                    f"Pipeline: expected means over one share of the samples in all "
                    f"micro-batches, got {name} of {own} elements in {samples:g} "
                    f"samples and of {other} in {first_samples:g}, as some labels are "
                    "ignored: pass samples=, how many of a micro-batch count"
                )


def weights_of(reduction: str | None, counts: Sequence[float]) -> list[float]:
    """What the numbers of parts are multiplied by before they are added up.

    Args:
        reduction: one of REDUCTIONS; None if there is one part only.
        counts: how many samples the means of each part are over.
    """
    total = sum(counts) or 1.0
    return [count / total if reduction == "mean" else 1.0 for count in counts]


def reductions_of(
    whole: Mapping[str, object],
    parts: Sequence[Mapping[str, object]],
    sizes: Sequence[int],
    counts: Sequence[float],
    axis: int,
    itemsize: int,
) -> Reductions:
    """Those by which what a program returns and reports for parts makes the whole.

    Args:
        whole: arrays and numbers in containers, by names.
        parts: the same for the parts.
        sizes: the numbers of samples of these.
        counts: how many of them their means are over.
        axis: of the samples.
        itemsize: of the smallest floats that are computed with.
    """
    possible = {}
    for name, y in whole.items():
        ys = [part.get(name) for part in parts]
        has_numbers = any(map(results.is_number, leaves(y)))
        possible[name] = frozenset(
            reduction
            for reduction in (REDUCTIONS if has_numbers else REDUCTIONS[:1])
            if _makes(ys, y, sizes, weights_of(reduction, counts), axis, itemsize)
        )
    return Reductions(possible)


def _makes(
    parts: Sequence[Any],
    whole: Any,
    sizes: Sequence[int],
    weights: Sequence[float],
    axis: int,
    itemsize: int,
) -> bool:
    near: list[bool] = []
    try:
        joined = results.join(parts, sizes, weights, axis)
        map_leaves(lambda a, b: near.append(_are_near(a, b, itemsize)), joined, whole)
    except (TypeError, ValueError):  # they are built in different ways
        return False
    return all(near)


def _are_near(a: Any, b: Any, itemsize: int) -> bool:
    a, b = numpy.asarray(a), numpy.asarray(b)
    if a.shape != b.shape or a.dtype.kind != "f" or b.dtype.kind != "f":
        return a.shape == b.shape and bool(numpy.all(a == b))
    with numpy.errstate(invalid="ignore"):
        tolerance = _TOLERANCES[min(a.itemsize, b.itemsize, itemsize)]
        near = numpy.abs(a - b) <= tolerance * numpy.abs(b).max(initial=0)
        return bool(numpy.all(near | (a == b) | numpy.isnan(a) & numpy.isnan(b)))
