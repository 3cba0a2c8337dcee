"""One shard of the parameters on its server: updates, clocks, and who may go on."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import NamedTuple

from renga.parallel.asynchronous.server.gradient import Gradient, mean_of
from renga.parallel.asynchronous.server.roles import Terms
from renga.parallel.asynchronous.server.settings import UpdateSettings
from renga.parallel.asynchronous.server.shard_optimizer import ShardOptimizer

LOG_SIZE = 1024  # updates of a shard that are remembered


class Push(NamedTuple):
    """The ``clock``-th gradient of a worker.

    ``version`` counts the updates of the shard in the parameters it was computed with.
    """

    worker: int
    clock: int
    version: int
    gradient: Gradient


class Update(NamedTuple):
    """An entry of the log: whose gradient made the next update, and of which version.

    ``rate`` is the factor by which the learning rate was multiplied.
    """

    worker: int
    clock: int
    version: int
    rate: float


class ShardServer:
    """Applies pushes, and says which workers may have the parameters.

    A worker's clock is the number of its pushes. After its push c, it gets parameters
    that contain all pushes up to ``c - staleness`` of every worker. With a staleness of
    0, the gradients of one clock are averaged in the order of ranks, weighted by their
    samples, and make one update unless one has overflowed; otherwise each makes an
    update when it comes. An update has the settings of its worker, or of the first.

    Args:
        optimizer: of the shard's pieces.
        find_hook: the hook for some HookSettings.
        terms: of the workers. The staleness by which learning rates are divided is the
            number of updates since a gradient's version, if it is not 0.

    Source: Ho et al., More effective distributed ML via a stale synchronous parallel
    parameter server, NIPS 2013; Zhang et al., Staleness-aware async-SGD, IJCAI 2016,
    for the rates.
    """

    def __init__(
        self,
        optimizer: ShardOptimizer,
        find_hook: Callable[..., object],
        terms: Terms,
    ) -> None:
        self.optimizer = optimizer
        self.version = 0
        self.greatest_clock = 0
        self.overflowed = False  # whether a gradient of the last clock had
        self.log: collections.deque[Update] = collections.deque(maxlen=LOG_SIZE)
        self.staleness: collections.Counter[int] = collections.Counter()
        self._find_hook = find_hook
        self._settings: dict[int, UpdateSettings] = {}  # by worker
        self._clocks = dict.fromkeys(terms.workers, 0)
        self._bound = terms.staleness
        self._aware = terms.staleness_aware
        self._collected: dict[int, Push] = {}  # with a staleness of 0
        self._waiting: dict[int, int] = {}  # clocks of workers that have no answer yet

    @property
    def workers(self) -> list[int]:
        """The ranks that push."""
        return sorted(self._clocks)

    @property
    def least_clock(self) -> int:
        """Every worker has pushed so often."""
        return min(self._clocks.values(), default=0)

    def is_waiting(self, worker: int) -> bool:
        """Whether the worker has asked for parameters and has none."""
        return worker in self._waiting

    def admit(self, worker: int) -> int:
        """Adds a worker and returns the clock at which it begins."""
        self._waiting.pop(worker, None)
        others = [c for w, c in self._clocks.items() if w != worker]
        self._clocks[worker] = min(others, default=self.version)
        return self._clocks[worker]

    def configure(self, worker: int, settings: UpdateSettings) -> None:
        """Updates by gradients of a worker have these settings from now on."""
        self._settings[worker] = settings

    def push(self, push: Push) -> None:
        """Takes a gradient."""
        self._clocks[push.worker] = push.clock
        self.greatest_clock = max(self.greatest_clock, push.clock)
        if self._bound == 0:
            self._collected[push.worker] = push
            self._apply_collected()
        elif push.gradient.is_usable:
            lag = self.version - push.version
            rate = rate_of(lag, self._aware)
            self._apply(push.worker, push.gradient, rate)
            self.log.append(Update(push.worker, push.clock, push.version, rate))
            self.staleness[lag] += 1

    def ask(self, worker: int, clock: int) -> None:
        """Makes a worker get the parameters for the gradient after its ``clock``-th."""
        self._clocks[worker] = self._waiting[worker] = clock

    def remove(self, worker: int) -> None:
        """Goes on without a worker, which has ended or is lost."""
        self._clocks.pop(worker, None)
        self._collected.pop(worker, None)
        self._waiting.pop(worker, None)
        if self._bound == 0:
            self._apply_collected()

    def due(self) -> list[int]:
        """The workers that get the parameters now."""
        least = self.least_clock
        due = [w for w, c in self._waiting.items() if least >= c - self._bound]
        for worker in due:
            del self._waiting[worker]
        return due

    def header(self) -> list[float]:
        """What is sent with the parameters."""
        return [self.version, self.least_clock, self.overflowed]

    def _apply_collected(self) -> None:
        """Updates by the mean of a clock's gradients once all workers have pushed."""
        if not self._collected or self._collected.keys() != self._clocks.keys():
            return
        pushes = [self._collected[w] for w in sorted(self._collected)]
        gradients = [push.gradient for push in pushes]
        self._collected.clear()
        self.overflowed = any(g.scale != g.scale for g in gradients)
        if not self.overflowed:
            self._apply(pushes[0].worker, mean_of(gradients), 1.0)
            self.staleness[0] += len(pushes)

    def _apply(self, worker: int, gradient: Gradient, rate: float) -> None:
        self.optimizer.use(self._settings[worker], self._find_hook)
        self.optimizer.update(gradient, rate)
        self.version += 1


def rate_of(lag: int, staleness_aware: bool) -> float:
    """The factor of the learning rate after ``lag`` updates since the version."""
    return 1 / lag if staleness_aware and lag > 0 else 1.0


def mean(counts: collections.Counter[int]) -> float:
    """Of numbers that have been counted; 0 of none."""
    total = sum(counts.values())
    return sum(k * n for k, n in counts.items()) / total if total else 0.0
