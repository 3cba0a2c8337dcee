"""What the parts of a model cost, measured by running it."""

from __future__ import annotations

import functools
import math
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy

from renga import _core
from renga.around_call import surrounding
from renga.backend import get_array_types
from renga.function_hook import FunctionHook
from renga.function_node import backward
from renga.link_hook import LinkHook
from renga.utils.containers import leaves
from renga.variable import Variable

if TYPE_CHECKING:
    from renga.communicators import Communicator
    from renga.link import Link

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
class Costs:
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
        for name in sorted(link._params):
            found.setdefault(id(getattr(link, name)), path)
    return found


def measure(
    model: Link,
    program: Callable[..., Any],
    inputs: Sequence[Any],
    micro_batches: int = 1,
    now: Callable[[], float] = time.perf_counter,
    least: int = 1,
) -> Costs:
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
    order = _Order(owners(model))
    _run(order, program, inputs)
    paths = list(order.paths)
    unused = sorted(set(order.owners.values()) - order.paths.keys())
    paths += unused[: max(0, least - len(paths))]
    for param in model.params():
        path = order.owners[id(param)]
        param.stage = paths.index(path) if path in paths else 0
    costs = Costs([Segment(path) for path in paths])
    for param in model.params():
        costs.segments[param.stage].parameter_bytes += param.array.nbytes
    spans = _Spans(model)
    with spans:
        steps = [_step(model, program, inputs, micro_batches, now)]
    costs.spans = spans.found
    steps += [
        _step(model, program, inputs, micro_batches, now)
        for _ in range(max(_STEPS, -(-_RUNS // micro_batches)))
    ]
    for i, segment in enumerate(costs.segments):
        for name in ("forward", "backward", "weights"):
            # Without the first step, which prepares what the others find.
            times = [getattr(step, name)[i] for step in steps[1:]]
            setattr(segment, name, statistics.median(times) / micro_batches)
    costs.values = [
        (first, last, n) for first, last, n in steps[0].crossing if last > first
    ]
    return costs


def _step(
    model: Link,
    program: Callable[..., Any],
    inputs: Sequence[Any],
    micro_batches: int,
    now: Callable[[], float],
) -> _Clock:
    """The times of the micro-batches of a step together, and what crosses segments."""
    clock = _Clock(now)
    model.cleargrads()
    for param in model.params():
        _ = param.array  # may have been written to from now on, as by an update
    for _ in range(micro_batches):
        result = leaves(_run(clock, program, inputs))
        ys = [y for y in result if isinstance(y, Variable) and y.requires_grad]
        for y in ys[:1]:
            y.grad = y.xp.ones_like(y.array)
            with clock:  # not in the forward pass, where hooks may write to weights
                clock.run_backward(y)
        clock.end()
    return clock


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


def _run(placement: Any, program: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    with surrounding(placement):
        return program(*inputs)


class _Order:
    """A placement that notes the order in which links' parameters are used."""

    def __init__(self, owners: dict[int, str]) -> None:
        self.owners = owners
        self.paths: dict[str, None] = {}

    def __call__(self, call: Any) -> None:
        for x in call.operands:
            if id(x) in self.owners:
                self.paths[self.owners[id(x)]] = None
        call.run()


class _Spans(LinkHook):
    """Notes which segments compute the outputs of links with persistent arrays."""

    name = "pipeline spans"

    def __init__(self, model: Link) -> None:
        self.found: dict[str, tuple[int, int]] = {}
        self._paths: dict[int, str] = {}
        for path, link in sorted(model.namedlinks(), key=lambda item: item[0]):
            values = [getattr(link, name) for name in link._persistent]
            if any(isinstance(value, get_array_types()) for value in values):
                self._paths.setdefault(id(link), path)

    def forward_postprocess(self, args: Any) -> None:
        path = self._paths.get(id(args.link))
        ys = [y for y in leaves(args.out) if isinstance(y, Variable)]
        segment = max((y.stage for y in ys), default=-1)
        if path is not None and segment >= 0:  # else every rank computes it
            first, last = self.found.get(path, (segment, segment))
            self.found[path] = min(first, segment), max(last, segment)


class _Clock(FunctionHook):
    """A placement that adds up the time of each segment, forward and backward."""

    name = "pipeline clock"

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.forward: dict[int, float] = defaultdict(float)
        self.backward: dict[int, float] = defaultdict(float)
        self.weights: dict[int, float] = defaultdict(float)
        self._current: dict[int, float] = self.backward
        # Segment, last segment that uses it, and bytes: of one run, and, of the present
        # one, by id; the variables are kept until its end, so that ids are unique.
        self.crossing: list[tuple[int, int, int]] = []
        self._values: dict[int, tuple[int, int, int]] = {}
        self._kept: list[Variable] = []
        self._start = 0.0

    def end(self) -> None:
        """Drops the variables, so that the next run finds their memory."""
        self.crossing = self.crossing or list(self._values.values())
        self._values.clear()
        self._kept.clear()

    def run_backward(self, y: Variable) -> None:
        """The backward pass, then the gradients of weights, as a stage does it."""
        postponed = _core.PostponedGradients()
        _core.postpone_gradients(postponed)
        self._current = self.backward
        try:
            backward([y])
        finally:
            _core.postpone_gradients(None)
        self._current = self.weights
        postponed.compute()

    def __call__(self, call: Any) -> None:
        target = max((x.stage for x in call.operands), default=-1)
        for x in call.operands:
            if 0 <= x.stage < target:
                last = self._values.get(id(x), (0, -1, 0))[1]
                n = x.array.nbytes
                self._values[id(x)] = (x.stage, max(last, target), n)
                self._kept.append(x)
        start = self._now()
        call.run()
        if target >= 0:
            self.forward[target] += self._now() - start
        for y in call.results:
            y.stage = target

    def backward_preprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
        self._start = self._now()

    def backward_postprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
        seconds = self._now() - self._start
        nodes = [node for node in (ref() for ref in function.outputs) if node]
        stage = max((node.stage for node in nodes), default=-1)
        if stage >= 0:
            self._current[stage] += seconds
