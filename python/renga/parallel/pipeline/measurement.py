"""What the parts of a model cost, measured by running it."""

from __future__ import annotations

import functools
import math
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

from renga import _core
from renga.communicators import Communicator
from renga.core.around_call import HandledCall, run_within, surrounding
from renga.core.backend import get_array_types
from renga.core.gradients import backward
from renga.core.link import Link
from renga.core.link.own_values import own_params, own_persistent
from renga.core.variable import Variable
from renga.program import Program, Recorder, Value, values_in
from renga.utils.containers import leaves

_STEPS = 3  # not by the clock: sharded links communicate
_RUNS = 8  # at least


@dataclass
class Segment:
    """A link with parameters, and the operations that follow until the next one.

    Seconds of a micro-batch: of the forward pass, of the backward pass without the
    gradients of weights, and of these; ``update`` are those of an update and of
    predictions, divided by the micro-batches.
    """

    link: str
    forward: float = 0.0
    backward: float = 0.0
    update: float = 0.0
    parameter_bytes: int = 0
    weights: float = 0.0

    @property
    def seconds(self) -> float:
        """Of all of it."""
        return self.forward + self.backward + self.weights + self.update


@dataclass
class SegmentCosts:
    """The segments of a model in the order of their first use.

    ``values`` has, for each variable that later segments use: its segment, the last
    segment that uses it, and its bytes. ``spans`` has the first and the last segment
    that compute the persistent arrays of a link, by its path: one stage has to have
    them both.
    """

    segments: list[Segment]
    values: list[tuple[int, int, int]] = field(default_factory=list)
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)

    def bytes_at(self, cut: int) -> int:
        """What is sent if a stage starts with segment ``cut``."""
        return sum(n for first, last, n in self.values if first < cut <= last)


def owners(model: Link) -> dict[int, str]:
    """The path of the link that each parameter belongs to, by the parameter's id."""
    found: dict[int, str] = {}
    for path, link in model.namedlinks():
        for param in own_params(link).values():
            found.setdefault(id(param), path)
    return found


def measure(
    model: Link,
    program: Callable[..., object],
    inputs: Sequence[object],
    micro_batches: int = 1,
    now: Callable[[], float] = time.perf_counter,
    least: int = 1,
) -> SegmentCosts:
    """Runs ``program(*inputs)`` forward and backward for a few steps.

    Running statistics of the model and the gradients change.

    Args:
        model: its parameters get the numbers of their segments as stages.
        program: calls the model.
        inputs: its arguments, for one micro-batch.
        micro_batches: of a step, after which weights change: what is prepared of them
            once a step, as packings, is a part of each micro-batch's time.
        now: the clock, in seconds.
        least: the number of segments that are wanted; if there are fewer, links that
            the program has not used are some, too, after the others.
    """
    owner_of = owners(model)
    recorder = Recorder(model)
    with surrounding(_AsInAStage()), recorder:
        program(*inputs)
    used = [id(value.variable) for value in recorder.program.values]
    paths = list(dict.fromkeys(owner_of[i] for i in used if i in owner_of))
    unused = sorted(set(owner_of.values()) - set(paths))
    paths += unused[: max(0, least - len(paths))]
    for param in model.params():
        path = owner_of[id(param)]
        param.stage = paths.index(path) if path in paths else 0
    costs = SegmentCosts([Segment(path) for path in paths])
    for param in model.params():
        costs.segments[param.stage].parameter_bytes += param.array.nbytes
    steps = [
        _step(model, program, inputs, micro_batches, now)
        for _ in range(1 + max(_STEPS, -(-_RUNS // micro_batches)))
    ]
    for i, segment in enumerate(costs.segments):
        for name in ("forward", "backward", "weights"):
            # The first step is left out, as it prepares what the others find.
            times = [getattr(step, name)[i] for step in steps[1:]]
            setattr(segment, name, statistics.median(times) / micro_batches)
    costs.values, costs.spans = steps[0].values, steps[0].spans
    return costs


def _step(
    model: Link,
    program: Callable[..., Any],
    inputs: Sequence[Any],
    micro_batches: int,
    now: Callable[[], float],
) -> _MeasuredStep:
    """The times of the micro-batches of a step together, and what crosses segments."""
    step = _MeasuredStep(model)
    model.cleargrads()
    for param in model.params():
        _ = param.array  # may have been written to from now on, as by an update
    for _ in range(micro_batches):
        recorder = Recorder(model, timed=True, now=now)
        with surrounding(_AsInAStage()), recorder:
            result = leaves(program(*inputs))
        step.add_forward(recorder.program)
        ys = [y for y in result if isinstance(y, Variable) and y.requires_grad]
        for y in ys[:1]:
            y.grad = y.xp.ones_like(y.array)
            step.add_backward(recorder, y)
    return step


class _AsInAStage:
    """Around the calls of a program that runs as its stages will: nothing recomputes.

    The values of a function that is computed again begin a graph of their own, in which
    links would be in other segments.
    """

    is_divided = True

    def __call__(self, call: HandledCall) -> None:
        """Runs a call."""
        run_within(_core.default_around_call(), call)


class _MeasuredStep:
    """The sums of the times of programs, by segments.

    Attributes:
        forward, backward, weights: seconds of each segment.
        values, spans: those of ``SegmentCosts``.
    """

    def __init__(self, model: Link) -> None:
        self.forward: dict[int, float] = defaultdict(float)
        self.backward: dict[int, float] = defaultdict(float)
        self.weights: dict[int, float] = defaultdict(float)
        self.values: list[tuple[int, int, int]] = []
        self.spans: dict[str, tuple[int, int]] = {}
        self._segments: dict[Value, int] = {}  # of the last program
        self._persistent: dict[int, str] = {}  # links' paths, by ids
        for path, link in sorted(model.namedlinks(), key=lambda item: item[0]):
            values = own_persistent(link).values()
            if any(isinstance(value, get_array_types()) for value in values):
                self._persistent.setdefault(id(link), path)

    def add_forward(self, program: Program) -> None:
        """Adds a forward pass: each call is a part of its operands' last segment."""
        self._segments = {
            value: -1 if value.variable is None else value.variable.stage
            for value in program.values
        }
        crossing: dict[Value, tuple[int, int, int]] = {}
        for call in program.calls:
            xs = call.operands
            segment = max((self._segments[x] for x in xs), default=-1)
            for x in xs:
                if 0 <= self._segments[x] < segment:
                    last = max(crossing.get(x, (0, -1, 0))[1], segment)
                    crossing[x] = self._segments[x], last, x.nbytes
            for y in call.results:
                self._segments[y] = segment
            if segment >= 0:
                self.forward[segment] += call.seconds
        self.values = self.values or list(crossing.values())
        for link_call in program.links:
            path = self._persistent.get(id(link_call.link))
            ys = values_in(link_call.result)
            segment = max((self._segments.get(y, -1) for y in ys), default=-1)
            if path is not None and segment >= 0:  # else every rank computes it
                first, last = self.spans.get(path, (segment, segment))
                self.spans[path] = min(first, segment), max(last, segment)

    def add_backward(self, recorder: Recorder, y: Variable) -> None:
        """Adds a backward pass, then the gradients of weights, as a stage runs them."""
        postponed = _core.PostponedGradients()
        _core.postpone_gradients(postponed)
        try:
            with recorder.timing_backward():
                backward([y])
        finally:
            _core.postpone_gradients(None)
        calls = [call for call in recorder.program.calls if call.results]
        segments = [self._segments[call.results[0]] for call in calls]
        before = [call.backward_seconds for call in calls]
        with recorder.timing_backward():
            postponed.compute()
        for call, segment, seconds in zip(calls, segments, before):
            self.backward[segment] += seconds
            self.weights[segment] += call.backward_seconds - seconds


@functools.cache
def memory_seconds_per_byte(ranks: int) -> float:
    """Of reading or writing an array that no cache holds, while ``ranks`` do so.

    Measured once for each number of ranks: the arrays take longer to allocate than a
    small model to train.
    """
    x = numpy.zeros(1 << 24, numpy.float32)
    y = numpy.zeros_like(x)
    seconds = math.inf
    for _ in range(3):
        start = time.perf_counter()
        x += y
        seconds = min(seconds, time.perf_counter() - start)
    return seconds / (3 * x.nbytes)


def seconds_per_byte(comm: Communicator) -> float:
    """Of a message between the first two ranks: half of a round trip."""

    if comm.size == 1:
        return 0.0
    x = numpy.zeros(1 << 20, numpy.uint8)
    seconds = math.inf
    for _ in range(3):
        start = time.perf_counter()
        if comm.rank == 0:
            comm.send(x, 1)
            comm.recv(1)
        elif comm.rank == 1:
            comm.send(comm.recv(0), 0)
        seconds = min(seconds, time.perf_counter() - start)
    return float(comm.bcast_obj(seconds)) / 2 / x.nbytes
