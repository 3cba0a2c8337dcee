"""Profiler: the time of every operation, forward and backward."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from renga.core.function_hook import Arrays, FunctionHook, get_function_hooks
from renga.core.operations import operation_name
from renga.core.types import CalledFunction, Path
from renga.function_hooks.running import RunningCalls
from renga.profiling import chrome_trace
from renga.profiling.operation_cost import OperationCost, backward_cost, forward_cost
from renga.profiling.operation_table import OperationRow, rows_of, table_of

if TYPE_CHECKING:
    from renga.communicators import Communicator


class OperationRun(NamedTuple):
    """One run of an operation; times in nanoseconds."""

    name: str
    direction: str  # forward or backward
    thread: int
    start: int
    elapsed: float
    own: float  # without nested operations
    cost: OperationCost


class Pass(NamedTuple):
    """What a stage of a pipeline computed for a micro-batch; times in nanoseconds."""

    name: str  # forward, backward or update
    stage: int
    micro_batch: int
    thread: int
    start: int
    elapsed: int


class Message(NamedTuple):
    """One end of a message between two stages of a pipeline."""

    id: str  # the same at both ends, and no other message's
    name: str
    is_sent: bool
    thread: int
    time: int  # nanoseconds


class Span(NamedTuple):
    """What a rank did besides operations; times in nanoseconds."""

    name: str
    kind: str  # communication or waiting
    thread: int  # 0 for what runs in the background
    start: int
    elapsed: int
    details: dict[str, Any]


class Profile(FunctionHook):
    """The operations that ran inside its ``with`` blocks, in each thread that has one.

    Times are wall-clock times from call to return, without nested operations, so the
    times of all operations add up to no more than the times of the blocks.
    """

    def __init__(self) -> None:
        self.name = f"Profile at {id(self):#x}"  # blocks may be nested
        self.events: list[OperationRun] = []
        self.passes: list[Pass] = []
        self.messages: list[Message] = []
        self.spans: list[Span] = []
        self._running = RunningCalls()
        self._entered: dict[int, int] = {}
        self._blocks: list[int] = []
        self._threads: dict[int, str] = {}

    def added(self, function: CalledFunction | None) -> None:
        if function is None:
            thread = threading.get_native_id()
            self._threads[thread] = threading.current_thread().name
            self._entered[thread] = time.perf_counter_ns()

    def deleted(self, function: CalledFunction | None) -> None:
        if function is None:
            entered = self._entered.pop(threading.get_native_id())
            self._running.clear()
            self._blocks.append(time.perf_counter_ns() - entered)

    def forward_preprocess(self, function: CalledFunction, in_data: Arrays) -> None:
        self._running.start(function)

    def forward_postprocess(self, function: CalledFunction, in_data: Arrays) -> None:
        self._note(function, "forward", lambda: forward_cost(function, in_data))

    def backward_preprocess(
        self, function: CalledFunction, in_data: Arrays, out_grad: Arrays
    ) -> None:
        self._running.start(function)

    def backward_postprocess(
        self, function: CalledFunction, in_data: Arrays, out_grad: Arrays
    ) -> None:
        self._note(function, "backward", lambda: backward_cost(function, out_grad))

    def _note(
        self,
        function: CalledFunction,
        direction: str,
        cost: Callable[[], OperationCost],
    ) -> None:
        call = self._running.stop(function)
        if call is not None:
            name, thread = operation_name(function), threading.get_native_id()
            times = call.begin, call.elapsed, call.own
            self.events.append(OperationRun(name, direction, thread, *times, cost()))

    def note_pass(self, name: str, stage: int, micro_batch: int, start: int) -> None:
        """Notes a pass of a pipeline that began at ``start`` and ends now."""
        elapsed = time.perf_counter_ns() - start
        thread = threading.get_native_id()
        self.passes.append(Pass(name, stage, micro_batch, thread, start, elapsed))

    def note_message(self, id: str, name: str, is_sent: bool) -> None:
        """Notes that a message is sent now, or has been received."""
        thread, now = threading.get_native_id(), time.perf_counter_ns()
        self.messages.append(Message(id, name, is_sent, thread, now))

    def note_span(
        self,
        name: str,
        kind: str,
        start: int,
        end: int,
        in_background: bool = False,
        **details: object,
    ) -> None:
        """Notes communication, or waiting for it, in nanoseconds of perf_counter_ns."""
        thread = 0 if in_background else threading.get_native_id()
        self.spans.append(Span(name, kind, thread, start, end - start, details))

    @property
    def block_seconds(self) -> float:
        """The duration of all ended blocks in seconds, summed over threads."""
        return sum(self._blocks) / 1e9

    def rows(self) -> list[OperationRow]:
        """One row for each operation and direction, the longest first."""
        return rows_of(
            (event.name, event.direction, event.own / 1e9, event.cost)
            for event in tuple(self.events)
        )

    def table(self) -> str:
        """The rows as text, with each one's percentage of the total time."""
        text = table_of(self.rows())
        return f"{text} of {self.block_seconds * 1e3:.3f} ms" if self._blocks else text

    __str__ = table

    def save_trace(self, path: Path, comm: Communicator | None = None) -> None:
        """Writes the events as JSON for chrome://tracing and Perfetto.

        With a communicator, rank 0 writes those of all ranks' profiles into one file,
        where each rank is a process: every rank calls it. The ranks of a pipeline are
        named after their stages, their passes enclose the operations, and arrows show
        the messages between them. Data-parallel training has a lane of buckets while
        they are averaged, and of waiting. Times are those of rank 0's clock:
        exact on its node, otherwise wrong by half of the fastest of ten round trips at
        most.

        Args:
            path: of the file.
            comm: the ranks whose profiles are saved together.

        Raises:
            TypeError: ``comm`` is no communicator.
            OSError: the file cannot be written; an old file at ``path`` is then
                unchanged.
        """
        if comm is not None and not hasattr(comm, "rank"):
            raise TypeError(f"save_trace: expected a communicator, got {comm!r}")
        events = self._trace_events()
        if comm is None:
            chrome_trace.write(path, events)
        else:
            chrome_trace.write_of_ranks(path, self._lane(comm.rank), events, comm)

    def _trace_events(self) -> list[chrome_trace.TraceEvent]:
        pid = os.getpid()
        names = [
            chrome_trace.metadata("thread_name", pid, thread, name=name)
            for thread, name in self._threads.items()
        ]
        if any(span.thread == 0 for span in self.spans):
            name = "communication"
            names.append(chrome_trace.metadata("thread_name", pid, 0, name=name))
        runs = [_trace_event(event, pid) for event in tuple(self.events)]
        passes = [_trace_pass(each, pid) for each in tuple(self.passes)]
        messages = [_trace_message(each, pid) for each in tuple(self.messages)]
        spans = [_slice(s, pid, s.name, s.kind, s.details) for s in tuple(self.spans)]
        return [*names, *runs, *passes, *spans, *messages]

    def _lane(self, rank: int) -> str:
        """What a trace calls this rank."""
        stages = sorted({each.stage for each in self.passes})
        if not stages:
            return f"rank {rank}"
        numbers = ", ".join(map(str, stages))
        return f"stage{'s' if len(stages) > 1 else ''} {numbers} (rank {rank})"


def profiler() -> Profile:
    """An empty profile: ``with renga.profiler() as profile: …``, ``print(profile)``."""
    return Profile()


def active_profiles() -> list[Profile]:
    """The profiles whose blocks this thread is in."""
    return [hook for hook in get_function_hooks().values() if isinstance(hook, Profile)]


def _trace_event(event: OperationRun, pid: int) -> chrome_trace.TraceEvent:
    known = {key: n for key, n in event.cost._asdict().items() if n is not None}
    return _slice(event, pid, event.name, event.direction, known)


def _trace_pass(each: Pass, pid: int) -> chrome_trace.TraceEvent:
    details = {"stage": each.stage, "micro-batch": each.micro_batch}
    return _slice(each, pid, f"{each.name} {each.micro_batch}", "pass", details)


def _slice(
    timed: OperationRun | Pass | Span, pid: int, name: str, kind: str, details: Any
) -> chrome_trace.TraceEvent:
    return {
        "name": name,
        "cat": kind,
        "ph": "X",
        "ts": timed.start / 1e3,
        "dur": timed.elapsed / 1e3,
        "pid": pid,
        "tid": timed.thread,
        "args": details,
    }


def _trace_message(each: Message, pid: int) -> chrome_trace.TraceEvent:
    """One end of an arrow between the slices that enclose it."""
    event = {
        "name": each.name,
        "cat": "message",
        "ph": "s" if each.is_sent else "f",
        "id": each.id,
        "ts": each.time / 1e3,
        "pid": pid,
        "tid": each.thread,
    }
    return event if each.is_sent else {**event, "bp": "e"}
