"""Activations and gradients on their way between the stages of a pipeline."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from renga import _core
from renga.pipeline.schedule import rank_of_stage
from renga.variable import Variable

if TYPE_CHECKING:
    from renga.communicators import Communicator

VALUE, GRADIENT = 0, 1


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
    """

    def __init__(self, comm: Communicator, stages: int) -> None:
        # A group of its own, so that its tags differ from those of the user.
        self._comm = comm.split(0, comm.rank)
        self._stages = stages
        self._report_tag = 2 * stages * stages
        self._sends: deque[Any] = deque()
        self._local: dict[Route, deque[Any]] = defaultdict(deque)
        self._posted: dict[Route, deque[_Receive]] = defaultdict(deque)

    def send(self, route: Route, x: Variable) -> None:
        """Starts to send the value of a variable."""
        rank = rank_of_stage(route.target, self._comm.size)
        if rank == self._comm.rank:
            self._local[route].append(Variable(x.array, requires_grad=False))
            return
        axes, elements = _core.in_memory_order(x)
        order = numpy.array(axes, numpy.int64)
        tag = self._tag(route)
        work = self._comm._native.send([order, elements], rank, tag, False)
        # The work keeps the arrays until they have been sent.
        self._sends.append(work)
        while self._sends and self._sends[0].test():
            self._sends.popleft()

    def receive(self, route: Route, kind: Kind) -> Variable:
        """The next variable that came on a route; waits for it."""
        rank = rank_of_stage(route.source, self._comm.size)
        if rank == self._comm.rank:
            return self._local[route].popleft()
        if not self._posted[route]:
            self.expect(route, kind)
        return self._posted[route].popleft().wait(kind, route)

    def expect(self, route: Route, kind: Kind) -> None:
        """Starts to receive a variable that will come on a route."""
        rank = rank_of_stage(route.source, self._comm.size)
        if rank != self._comm.rank:
            receive = _Receive(self._comm._native, rank, self._tag(route), kind)
            self._posted[route].append(receive)

    def expected(self, route: Route) -> int:
        """How many receives of a route have been started and not been waited for."""
        return len(self._posted[route])

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
        observation: dict[str, float] = self._comm.recv_obj(last, self._report_tag)
        return observation

    def wait(self) -> None:
        """Waits until everything has been sent."""
        while self._sends:
            self._sends.popleft().wait(0.0)

    def _tag(self, route: Route) -> int:
        return (route.kind * self._stages + route.source) * self._stages + route.target


class _Receive:
    """A receive in flight."""

    def __init__(self, native: Any, rank: int, tag: int, kind: Kind) -> None:
        self._kind = kind
        self._order = numpy.empty(len(kind.shape), numpy.int64)
        size = math.prod(kind.shape)
        self._data = _core.empty_variable((size,), kind.dtype, _core.host_name())
        self._work = native.receive([self._order, self._data], rank, tag, False)

    def wait(self, kind: Kind, route: Route) -> Variable:
        """The variable, once it is here."""
        if kind != self._kind:
            raise RuntimeError(
                f"pipeline: expected {self._kind.dtype} {self._kind.shape} from stage "
                f"{route.source} for stage {route.target}, as for the last micro-batch "
                f"with inputs of these shapes, but the model needs {kind.dtype} "
                f"{kind.shape}"
            )
        self._work.wait(0.0)
        order = self._order.tolist()
        return _core.from_memory_order(self._data, kind.shape, order)
