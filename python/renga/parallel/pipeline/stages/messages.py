"""Activations and gradients on their way between the stages of a pipeline."""

from __future__ import annotations

import contextlib
import functools
import math
import zlib
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from renga import _core
from renga.communicators import Communicator, RankFailed
from renga.communicators.messages.status import ANY_SOURCE
from renga.core.variable import Variable
from renga.parallel.pipeline.agreement import Failures, completes
from renga.parallel.pipeline.schedule import rank_of_stage
from renga.utils.exceptions import describe

VALUE, GRADIENT = 0, 1
_TAGS = 1 << 22  # that every transport has


class Route(NamedTuple):
    """From which stage to which, and whether values or their gradients."""

    kind: int
    source: int
    target: int


class Kind(NamedTuple):
    """What a receiver knows of a variable before it comes."""

    shape: tuple[int, ...]
    dtype: str  # in the core, where an array may be of bfloat16

    @classmethod
    def of(cls, x: Any) -> Kind:
        """That of a Variable or an array."""
        if isinstance(x, Variable):
            return cls(x.shape, _core.dtype_name(x))
        return cls(x.shape, x.dtype.name)


class StageMessages:
    """Sends and receives variables between stages, in order on each route.

    Sends do not wait. A variable keeps the order of its axes in memory, on which the
    choice of algorithms, and so the last bits of results, may depend.

    Args:
        comm: the ranks of the pipeline.
        stages: the number of stages.
        failures: of this rank.
    """

    def __init__(self, comm: Communicator, stages: int, failures: Failures) -> None:
        # A group of its own, so that its tags differ from those of the user.
        self._comm = comm.split(0, comm.rank)
        self.stages = stages
        self._failures = failures
        self._report_tag = 2 * stages * stages
        self._failure_tag = self._report_tag + 1
        self._told = ""  # of a failure on another rank
        self._sends: deque[Any] = deque()
        self._local: dict[Route, deque[Any]] = defaultdict(deque)
        self._posted: dict[tuple[Route, Kind], deque[_Receive]] = defaultdict(deque)

    def send(self, route: Route, x: Variable) -> None:
        """Starts to send the value of a variable."""
        rank = rank_of_stage(route.target, self._comm.size)
        if rank == self._comm.rank:
            self._local[route].append(Variable(x.array, requires_grad=False))
            return
        axes, elements = _core.in_memory_order(x)
        order = numpy.array(axes, numpy.int64)
        tag = self._tag(route, Kind.of(x))
        work = self._comm.native.send([order, elements], rank, tag, False)
        # The work keeps the arrays until they have been sent.
        self._sends.append(work)
        while self._sends and self._sends[0].test():
            self._sends.popleft()

    def receive(self, route: Route, kind: Kind) -> Variable:
        """The next variable that came on a route; waits for it."""
        rank = rank_of_stage(route.source, self._comm.size)
        if rank == self._comm.rank:
            return self._local[route].popleft()
        if not self._posted[route, kind]:
            self.expect(route, kind)
        receive = self._posted[route, kind].popleft()
        self._wait_for(receive.completes)
        return receive.variable()

    def expect(self, route: Route, kind: Kind) -> None:
        """Starts to receive a variable that will come on a route.

        If none of that kind comes, it receives a later one.
        """
        rank = rank_of_stage(route.source, self._comm.size)
        if rank != self._comm.rank:
            receive = _Receive(self._comm.native, rank, self._tag(route, kind), kind)
            self._posted[route, kind].append(receive)

    def expected(self, route: Route, kind: Kind) -> int:
        """How many such receives have been started and not been waited for."""
        return len(self._posted[route, kind])

    def send_report(self, observation: dict[str, float]) -> None:
        """Sends what the last rank has observed to the others; others do nothing."""
        last = self._comm.size - 1
        if self._comm.rank == last:
            for rank in range(last):
                self._comm.send_obj(observation, rank, self._report_tag)

    def receive_report(self) -> dict[str, float]:
        """The next observation of the last rank; nothing on that rank."""
        last = self._comm.size - 1
        if self._comm.rank == last:
            return {}
        source = last, self._report_tag
        self._wait_for(lambda seconds: self._comm.probe(*source, seconds) is not None)
        observation: dict[str, float] = self._comm.recv_obj(*source)
        return observation

    def wait(self) -> None:
        """Waits until everything has been sent."""
        while self._sends:
            self._wait_for(functools.partial(completes, self._sends.popleft()))

    def tell_failure(self, error: BaseException) -> None:
        """Tells the other ranks that this one does not send what they may wait for."""
        text = f"on rank {self._comm.rank}: {describe(error)}".encode()
        notice = numpy.frombuffer(text, numpy.uint8)
        with contextlib.suppress(RankFailed):
            for rank in set(range(self._comm.size)) - {self._comm.rank}:
                self._comm.send(notice, rank, self._failure_tag, wait=False)

    def _wait_for(self, is_there: Callable[[float], bool]) -> None:
        self._failures.wait_for_others(is_there, self.told_failure)

    def told_failure(self) -> str:
        """What another rank has told of its failure; empty if none has."""
        if not self._told:
            found = self._comm.probe(ANY_SOURCE, self._failure_tag, timeout=0)
            if found is not None:
                notice = self._comm.recv(found.source, found.tag)
                self._told = notice.tobytes().decode()
        return self._told

    def _tag(self, route: Route, kind: Kind) -> int:
        """Variables of other kinds have other tags: none is received as another."""
        number = (route.kind * self.stages + route.source) * self.stages
        routes = self._failure_tag + 1
        digest = zlib.crc32(repr(tuple(kind)).encode()) % (_TAGS // routes - 1)
        return (digest + 1) * routes + number + route.target


class _Receive:
    """A receive in flight."""

    def __init__(self, native: Any, rank: int, tag: int, kind: Kind) -> None:
        self._shape = kind.shape
        self._order = numpy.empty(len(kind.shape), numpy.int64)
        size = math.prod(kind.shape)
        self._data = _core.empty_variable((size,), kind.dtype, _core.host_name())
        work = native.receive([self._order, self._data], rank, tag, False)
        self.completes = functools.partial(completes, work)

    def variable(self) -> Variable:
        """What has come."""
        return _core.from_memory_order(self._data, self._shape, self._order.tolist())
