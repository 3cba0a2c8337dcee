"""The ways to split an operation over ranks."""

from __future__ import annotations

import dataclasses
import functools
import math
import random
from collections.abc import Sequence

from renga.parallel.plan.graph import PARAMETER, SAMPLE, WHOLE, Operation

_KINDS_WITH_SUMS = ("convolution", "linear")


@dataclasses.dataclass(frozen=True)
class Configuration:
    """Into how many tasks an operation is split along each axis, and their ranks.

    Tasks are numbered with the last axis varying fastest, then the axes before it, the
    terms of a sum (``reduction``), and the replicas, which compute the same.
    """

    degrees: tuple[int, ...]
    ranks: tuple[int, ...]
    reduction: int = 1
    replicas: int = 1

    def text(self, op: Operation) -> str:
        """In words: ``samples 4, channels 2 on ranks 0-7``."""
        names = {SAMPLE: "samples", PARAMETER: "channels"}
        parts = []
        for axis, (kind, degree) in enumerate(zip(op.axes, self.degrees)):
            if degree > 1:
                default = {1: "channels", 2: "rows", 3: "columns"}.get(axis, "axis")
                parts.append(f"{names.get(kind, default)} {degree}")
        if self.reduction > 1:
            parts.append(f"inputs {self.reduction}")
        if self.replicas > 1:
            parts.append(f"replicas {self.replicas}")
        return f"{', '.join(parts) or 'one task'} on {ranks_text(self.ranks)}"


def ranks_text(ranks: Sequence[int]) -> str:
    """``rank 3``, ``ranks 0-7`` or ``ranks 0, 2, 5``."""
    known = sorted(set(ranks))
    if len(known) == 1:
        return f"rank {known[0]}"
    if known == list(range(known[0], known[-1] + 1)):
        return f"ranks {known[0]}-{known[-1]}"
    return f"ranks {', '.join(map(str, known))}"


def data_parallel(op: Operation, ranks: int) -> Configuration:
    """Each rank has a share of the samples; the largest even one if too few."""
    degrees = [1] * len(op.extents)
    if op.axes[0] == SAMPLE:
        degrees[0] = min(ranks, op.extents[0])
    return Configuration(tuple(degrees), tuple(range(math.prod(degrees))))


def parameter_parallel(op: Operation, ranks: int) -> Configuration:
    """Each rank has a share of the output channels, of layers that have parameters."""
    if PARAMETER not in op.axes:
        return data_parallel(op, ranks)
    axis = op.axes.index(PARAMETER)
    degrees = [1] * len(op.extents)
    degrees[axis] = min(ranks, op.extents[axis])
    return Configuration(tuple(degrees), tuple(range(degrees[axis])))


def configurations(op: Operation, ranks: int) -> list[Configuration]:
    """All splits into tasks on consecutive ranks, of sizes that divide ``ranks``."""
    found = []
    for tasks in _divisors(ranks):
        for degrees, reduction in _splits(op, tasks):
            for first in range(0, ranks, tasks):
                devices = tuple(range(first, first + tasks))
                found.append(Configuration(degrees, devices, reduction))
    return found


def random_configuration(
    op: Operation, ranks: int, generator: random.Random
) -> Configuration:
    """One of :func:`configurations`; sizes, splits and ranks are drawn in turn."""
    tasks = generator.choice(_divisors(ranks))
    choices = _splits(op, tasks)
    while not choices:
        tasks = generator.choice(_divisors(ranks))
        choices = _splits(op, tasks)
    degrees, reduction = generator.choice(choices)
    first = generator.randrange(ranks // tasks) * tasks
    return Configuration(degrees, tuple(range(first, first + tasks)), reduction)


def _splits(op: Operation, tasks: int) -> list[tuple[tuple[int, ...], int]]:
    limits = [e if kind != WHOLE else 1 for e, kind in zip(op.extents, op.axes)]
    limits.append(op.reduction if op.kind in _KINDS_WITH_SUMS else 1)
    return [(split[:-1], split[-1]) for split in _products(tasks, tuple(limits))]


@functools.cache
def _products(size: int, limits: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Factors of ``size``, one for each limit."""
    if not limits:
        return [()] if size == 1 else []
    return [
        (factor, *rest)
        for factor in _divisors(size)
        if factor <= limits[0]
        for rest in _products(size // factor, limits[1:])
    ]


def _divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]
