"""Virtual ranks: events, threads that wait for them, and what gives threads turns.

A thread runs until it has to wait, or until it communicates while the clock of another
thread that could run is behind its own. So the ranks communicate in the order of their
clocks, and of their numbers at equal times: real threads have no influence on it.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
import threading
import time
from collections.abc import Iterable
from typing import Any, Callable

import numpy as np

from renga import _communicators
from renga.communicators import settings
from renga.communicators.failure import RankFailed
from renga.communicators.simulated.virtual.random_states import RandomStates
from renga.communicators.transport.traffic import Traffic
from renga.utils.exceptions import describe
from renga.utils.type_check import InvalidType

# Unsuccessful tests, while the other ranks wait or test too, after which their loops
# are taken to be endless.
_MAX_TESTS = 100_000


class Deadlock(RuntimeError):
    """Every rank waits for another one; the message says for what."""


class Event:
    """Something that happens at a virtual time, or fails then.

    ``time`` is in seconds, and None as long as it depends on what ranks do next.
    """

    def __init__(self, description: str) -> None:
        self.description = description
        self.time: float | None = None
        self.mismatch: str | None = None  # why it fails then
        self.waiting: list[VirtualThread] = []

    def has_happened(self, now: float) -> bool:
        """Whether its time has come; raises InvalidType if it has failed."""
        if self.time is None or self.time > now:
            return False
        if self.mismatch is not None:
            raise InvalidType(self.mismatch)
        return True

    def may_be_earlier(self) -> bool:
        """Whether its time may still become an earlier one."""
        return False

    def describe(self) -> str:
        """What it is, for errors."""
        return self.description


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

    def advance(self, task: object) -> None:
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


class Scheduler:
    """The threads of all ranks, one of which runs at a time.

    Args:
        ranks: their number.
        seconds_of: the seconds that a task takes on a rank; None if computation takes
            the time that it really takes.
        moves: whether collectives compute and write their results.
    """

    def __init__(
        self,
        ranks: int,
        seconds_of: Callable[[int, object], float] | None,
        moves: bool = True,
    ) -> None:
        self.seconds_of, self.moves = seconds_of, moves
        seeds = np.random.randint(2**32, size=ranks, dtype=np.uint64).tolist()
        self.threads = [VirtualThread(self, r, seed) for r, seed in enumerate(seeds)]
        self.errors: list[tuple[int, BaseException]] = []  # with the numbers of ranks
        self._remaining = list(self.threads)
        self._queue: list[tuple[float, int, VirtualThread]] = []
        self._later = itertools.count(ranks)  # behind all ranks at equal times
        # Makes the exception that every further call raises, each rank its own.
        self._failure: Callable[[], RuntimeError] | None = None
        self._tests = 0
        self._has_ended = threading.Event()

    def run(self, body: Callable[[int], None]) -> None:
        """Calls ``body(number)`` on each thread and returns when all have ended."""
        threads = [
            threading.Thread(
                target=thread.run,
                args=(functools.partial(body, thread.number),),
                name=f"virtual rank {thread.number}",
            )
            for thread in self.threads
        ]
        random = RandomStates.installed()
        try:
            self._start(threads)
            self._take_first().wake()
            self._wait_for_end(threads)
        finally:
            random.install()

    def _start(self, threads: list[threading.Thread]) -> None:
        for number, thread in enumerate(threads):
            try:
                thread.start()
            except RuntimeError as error:  # too many threads: the others must end
                self.fail(str(error))
                self._remaining = self.threads[:number]
                if number > 0:
                    self._take_first().wake()
                    self._wait(threads[:number])
                raise
            self.enqueue(self.threads[number], 0.0)

    def _wait_for_end(self, threads: list[threading.Thread]) -> None:
        try:
            self._wait(threads)
        except BaseException as error:  # Ctrl-C: the ranks must end too
            self.fail(f"the caller was interrupted: {type(error).__name__}")
            self._wait(threads)
            raise

    def _wait(self, threads: list[threading.Thread]) -> None:
        while not self._has_ended.wait(settings.SECONDS_PER_WAIT):
            pass
        for thread in threads:
            thread.join()

    def end(self, thread: VirtualThread) -> None:
        """Gives the turn of a thread that ends to another one."""
        self._remaining.remove(thread)
        if self._remaining:
            self._take_first().wake()
        else:
            self._has_ended.set()

    def report(self, number: int, error: BaseException) -> None:
        """Ends all ranks because of an exception on one of them."""
        self.errors.append((number, error))
        self.fail(f"rank {number} failed: {describe(error)}")

    def fail(self, message: str) -> None:
        """Makes every further call raise RankFailed; later failures are ignored."""
        if self._failure is None:
            self._failure = functools.partial(RankFailed, message)

    def check_failure(self) -> None:
        """Raises if the ranks have to end."""
        if self._failure is not None:
            raise self._failure()

    def enqueue(
        self, thread: VirtualThread, at: float, order: int | None = None
    ) -> None:
        """Lets a thread run at a time; at equal times, the least ``order`` is first."""
        thread.entry = (at, thread.number if order is None else order, thread)
        heapq.heappush(self._queue, thread.entry)

    def _first(self) -> tuple[float, int, VirtualThread] | None:
        """The entry of the thread whose turn is next."""
        while self._queue and self._queue[0][2].entry is not self._queue[0]:
            heapq.heappop(self._queue)  # replaced by a later call of enqueue()
        return self._queue[0] if self._queue else None

    def _take_first(self) -> VirtualThread:
        """The thread whose turn is next. After a failure, one that has to end."""
        first = self._first()
        if first is None and self._failure is None:
            self._fail_by_deadlock()
        if first is None or self._failure is not None:
            return self._remaining[0]
        heapq.heappop(self._queue)
        first[2].entry = None
        return first[2]

    def _fail_by_deadlock(self) -> None:
        lines = [thread.describe() for thread in self.threads]
        text = "\n  ".join(["simulated: no rank can go on:", *lines])
        self._failure = functools.partial(Deadlock, text)

    def is_another_behind(self, thread: VirtualThread) -> bool:
        """Whether a thread has to run before this one may communicate."""
        first = self._first()
        return first is not None and first[:2] < (thread.clock, thread.number)

    def run_next(self, thread: VirtualThread) -> None:
        """Lets others run until it is the turn of ``thread``, which is queued."""
        following = self._take_first()
        if following is not thread:
            thread.give_turn_to(following)
        self.check_failure()

    def complete(self, event: Event, at: float) -> None:
        """Sets the time of an event and queues the threads that wait for it."""
        self.bring_forward(event, at)
        event.waiting.clear()

    def bring_forward(self, event: Event, at: float) -> None:
        """Sets an earlier time of an event, and of the threads that wait for it."""
        self._tests = 0
        event.time = at
        for thread in event.waiting:
            self.enqueue(thread, min(max(at, thread.clock), thread.deadline))

    def let_time_pass(self, thread: VirtualThread, events: Iterable[Event]) -> None:
        """Continues ``thread`` as soon as one of the events can have happened."""
        times = [event.time for event in events if event.time is not None]
        first = self._first()
        if first is not None:
            times.append(first[0])
        if times:
            thread.clock = max(thread.clock, min(times))
            # Behind the others of this time, and behind those that test since before.
            self.enqueue(thread, thread.clock, next(self._later))
            self.run_next(thread)

    def count_test(self, event: Event) -> None:
        """Takes note of an unsuccessful test.

        Raises:
            Deadlock: after very many, while other ranks wait or test too.
        """
        self._tests += 1
        if self._tests % len(self.threads):  # to look at all of them is dear
            return
        queued = (entry[2] for entry in self._queue if entry[2].entry is entry)
        if event.time is not None or not all(other.is_testing for other in queued):
            self._tests = 0
        elif self._tests > _MAX_TESTS:
            self._fail_by_deadlock()
            self.check_failure()
