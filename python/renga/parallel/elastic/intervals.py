"""How often to save, and how long a job takes whose ranks fail.

Failures come at random, as often at any time. Times are in seconds.

Sources: Young, A first order approximation to the optimum checkpoint interval, 1974;
Daly, A higher order estimate of the optimum checkpoint interval for restart dumps,
2006.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator

from renga.communicators import Communicator
from renga.utils.argument import check_number


def interval(save: float, between_failures: float) -> float:
    """How long to compute between two checkpoints, by Daly's estimate.

    Args:
        save: how long a checkpoint keeps the ranks from computing.
        between_failures: of any rank, on average.

    Raises:
        ValueError: one of them is not above 0.
    """
    check_number("interval: save", save, 0, is_above=True)
    check_number("interval: between_failures", between_failures, 0, is_above=True)
    if save >= 2 * between_failures:
        return between_failures
    ratio = save / (2 * between_failures)
    # Young's interval, and what the time of saving changes.
    young = math.sqrt(2 * save * between_failures)
    return young * (1 + math.sqrt(ratio) / 3 + ratio / 9) - save


def expected_seconds(
    work: float, computed: float, save: float, restart: float, between_failures: float
) -> float:
    """How long ``work`` takes, with a checkpoint whenever so long was ``computed``.

    Args:
        work: without failures and checkpoints.
        restart: from a failure until computing goes on; it may fail, too.

    Returns:
        inf if failures are so often that it practically never ends.

    Raises:
        ValueError: a time is negative, or there is none between checkpoints or
            failures.
    """
    name, m = "expected_seconds", between_failures
    check_number(f"{name}: computed", computed, 0, is_above=True)
    check_number(f"{name}: between_failures", m, 0, is_above=True)
    for own in (work, save, restart):
        check_number(f"{name}: work, save and restart", own, 0)
    try:
        each = m * math.exp(restart / m) * math.expm1((computed + save) / m)
    except OverflowError:
        return math.inf
    return each * work / computed


class Pace:
    """After how many iterations the ranks save, from times that rank 0 measures.

    Args:
        between_failures: seconds.

    Raises:
        ValueError: they are not above 0.
    """

    def __init__(self, comm: Communicator, between_failures: float) -> None:
        interval(1.0, between_failures)
        self._comm, self._between_failures = comm, between_failures
        self._next, self._steps = 0, 1
        self._last: tuple[int, float] | None = None  # an iteration, and its end

    def is_due(self, iteration: int) -> bool:
        """Whether to save after an iteration; the same on all ranks."""
        return iteration >= self._next

    @contextlib.contextmanager
    def saving(self, iteration: int) -> Iterator[None]:
        """Measures what saving takes, and chooses the next iteration to save after."""
        begun = time.perf_counter()
        yield
        end = time.perf_counter()
        steps = 1
        if self._last is not None and iteration > self._last[0]:
            each = (begun - self._last[1]) / (iteration - self._last[0])
            best = interval(end - begun, self._between_failures)
            steps = max(1, min(2 * self._steps, round(best / max(each, 1e-9))))
        self._last = iteration, end
        self._steps = int(self._comm.bcast_obj(steps))
        self._next = iteration + self._steps
