"""The thread of one virtual rank, and its clock."""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING, Any, Callable

from renga import _communicators
from renga.communicators.simulated.virtual.events import Event
from renga.communicators.simulated.virtual.random_states import RandomStates
from renga.communicators.transport.traffic import Traffic

if TYPE_CHECKING:
    from renga.communicators.simulated.virtual.scheduler import Scheduler


class VirtualThread:
    """Runs while it has the turn. As a context: a call, whose real time is not counted.

    Args:
        scheduler: that gives it turns.
        number: of the rank.
        seed: of its global random generators.
    """

    def __init__(self, scheduler: Scheduler, number: int, seed: int) -> None:
        self.number = number
        self.clock = 0.0  # seconds, at the last call
        self.traffic = Traffic()
        self.is_testing = False  # since its last call
        self.deadline = math.inf  # of the wait that it is in
        self.entry: tuple[float, int, VirtualThread] | None = None  # in the queue
        self._scheduler = scheduler
        self._random = RandomStates(seed)
        self._turn = threading.Lock()  # held by another thread while it has to wait
        self._turn.acquire()
        self._status = "has not begun"
        self._waits_for: Event | None = None
        self._tested: dict[Event, None] = {}  # without success, at this time:
        self._tested_at = -1.0
        self._computes_since = 0.0  # perf_counter()

    def run(self, body: Callable[[], None]) -> None:
        """Calls ``body`` at the first turn, then gives the turn to another thread."""
        self._identity = threading.get_ident()
        self._turn.acquire()
        try:
            self._random.install()
            self._status = "runs"
            self._scheduler.check_failure()
            self._computes_since = time.perf_counter()
            body()
            self.clock = self.now
            self._status = "has returned"
        except BaseException as error:
            self._scheduler.report(self.number, error)
        finally:
            self._scheduler.end(self)

    @property
    def now(self) -> float:
        """The virtual time in seconds, with computation since the last call."""
        if self._scheduler.seconds_of is not None:
            return self.clock
        return self.clock + time.perf_counter() - self._computes_since

    def __enter__(self) -> VirtualThread:
        if threading.get_ident() != self._identity:
            raise RuntimeError(
                f"simulated: expected the thread of virtual rank {self.number}, got "
                "another one; a virtual rank communicates from the thread that runs it"
            )
        self._scheduler.check_failure()
        self.is_testing = False
        self.clock = self.now
        return self

    def __exit__(self, *exception: Any) -> None:
        self._computes_since = time.perf_counter()

    def compute(self, seconds: float) -> None:
        """Adds the time of a computation."""
        if not 0 <= seconds < math.inf:
            raise ValueError(f"compute: expected seconds of 0 or more, got {seconds}")
        with self:
            self.clock += seconds

    def advance(self, task: Any) -> None:
        """Adds the time of a task, unless computation is measured."""
        if self._scheduler.seconds_of is not None:
            self.compute(self._scheduler.seconds_of(self.number, task))

    def take_turn(self) -> None:
        """Lets the threads run whose clocks are behind this one's."""
        if self._scheduler.is_another_behind(self):
            self._scheduler.enqueue(self, self.clock)
            self._scheduler.run_next(self)

    def wait_for(self, event: Event, timeout: float = math.inf) -> bool:
        """Waits until the event's time, raises its error. False after ``timeout``."""
        self.deadline = self.clock + timeout
        is_open = event.may_be_earlier() and not event.has_happened(self.clock)
        if event.time is None or is_open:
            self._block(event)
        if event.time is None or event.time > self.deadline:
            self.clock = self.deadline
            return False
        self.clock = max(self.clock, event.time)
        return event.has_happened(self.clock)

    def _block(self, event: Event) -> None:
        """Waits until the event's time is known, or until the deadline."""
        self._waits_for = event
        self._status = f"waits at {_communicators.call_site()} for"
        event.waiting.append(self)
        at = self.deadline if event.time is None else min(event.time, self.deadline)
        if at < math.inf:
            self._scheduler.enqueue(self, at)
        self._scheduler.run_next(self)
        self._status, self._waits_for = "runs", None
        if self in event.waiting:
            event.waiting.remove(self)

    def test(self, event: Event) -> bool:
        """Whether the event has happened; raises its error.

        A test that is repeated at one time is taken for a loop, which ends when
        something has happened: time passes until then.
        """
        self.is_testing = True
        self.take_turn()
        if self._tested_at == self.clock and event in self._tested:
            self._scheduler.let_time_pass(self, self._tested)
        if event.has_happened(self.clock):
            self.is_testing = False
            return True
        if self._tested_at != self.clock:
            self._tested, self._tested_at = {}, self.clock
        self._tested[event] = None
        self._scheduler.count_test(event)
        return False

    def give_turn_to(self, other: VirtualThread) -> None:
        """Lets ``other`` run and returns when it is this thread's turn again."""
        self._random.save()
        other.wake()
        self._turn.acquire()
        self._random.install()

    def wake(self) -> None:
        """Gives it the turn."""
        self._turn.release()

    def describe(self) -> str:
        """What it does, for errors."""
        event = "" if self._waits_for is None else f" {self._waits_for.describe()}"
        return f"rank {self.number} at {self.clock:.6g} s {self._status}{event}"
