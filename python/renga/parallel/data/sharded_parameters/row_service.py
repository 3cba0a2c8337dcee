"""Rows of parameters that other ranks ask for, whatever this rank is doing."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from typing import Any, NamedTuple

import numpy

from renga.communicators import Communicator, RankFailed, Work
from renga.core.types import Array

_REQUEST_TAG, _ROW_TAGS = 0, 32766  # the least that MPI allows, without this one
_DONE = -1  # in the place of a row's number: the sender asks for no more rows
# How long the thread that answers waits for a request before it looks at other things,
# and while there are rows that it is to pass on.
_IDLE_SECONDS, _BUSY_SECONDS = 10e-3, 2e-3
# A process that has come to its end does not wait longer for requests.
_LAST_SECONDS = 60.0


class Request(NamedTuple):
    """What one rank asks another for: the rows of all ranks of a node.

    Attributes:
        number: of the rows.
        node: whose ranks have the rows.
        version: how often rows have changed.
    """

    number: int
    node: int
    version: int


class RowService:
    """Gets rows of other ranks, which need not take part, and gives them this rank's.

    So a rank may compute alone with parameters of which others have the rest. Rows
    are numbered in the order in which they are added, which is the same on all ranks.
    A thread of each rank answers until no rank has a use for rows any more. A process
    does not end before, unless the others wait for it in an update.

    Ranks of one node read each other's rows where they are, in memory that they share.
    The rows of another node go together to one rank of this node, which the others of
    the node ask for them. A rank that shares no memory is a node by itself.

    Every rank makes one at the same time.

    Args:
        comm: the ranks.
    """

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm.split(0, comm.rank)
        self._answers = _Answers(self._comm)
        weakref.finalize(self, self._answers.is_closing.set)

    def empty(self, size: int) -> Array:
        """Bytes for rows of this rank; every rank calls it with the same size.

        Raises:
            MemoryError: if the ranks of a node share memory, and there is too little.
        """
        memory: Array = self._comm.window((size,), numpy.uint8)
        if self._comm.shares_memory() and not self._comm.window_layout([memory]):
            raise MemoryError(
                f"shard: expected {size} bytes for each rank in memory that the ranks "
                "of a node share, got less"
            )
        return memory

    def add(self, row: Array) -> int:
        """The number of a row that others may ask for, once all ranks have added it.

        Args:
            row: a part of what :meth:`empty` has returned.
        """
        return self._answers.add(row)

    def keep(self, numbers: set[int]) -> None:
        """Forgets all other rows, for which no rank asks any more."""
        self._answers.keep(numbers)

    def set_updating(self, is_updating: bool) -> None:
        """Tells whether this rank is in an update, in which it waits for all ranks."""
        self._answers.is_updating = is_updating

    def forget_others(self) -> None:
        """Begins a version of all rows: before a barrier after which rows differ.

        Requests of the version before may still come until then, and are answered.
        """
        self._answers.forget_others()

    def fetch(self, number: int, rows: Array) -> list[Work]:
        """Works that fill the rows of other ranks in an array (ranks, elements)."""
        answers, rank = self._answers, self._comm.rank
        for r, row in zip(answers.own_node, answers.rows[number]):
            if r != rank:
                rows[r] = row
        works: list[Any] = []
        for node, ranks in enumerate(answers.nodes):
            if rank in ranks:
                continue
            request = Request(number, node, answers.version)
            to = [rows[r] for r in ranks]
            asked = answers.asked_rank(request)
            if asked in answers.own_node or len(answers.own_node) == 1:
                works.append(answers.ask(asked, request, to))
            else:
                works.append(_Copy(answers, answers.passed_rows(request), to))
        return works


def _nodes_of(comm: Communicator) -> list[list[int]]:
    """The ranks of each node that share memory, by their local ranks."""
    shares_memory = comm.shares_memory()
    places = comm.allgather_obj((comm.inter_rank, comm.intra_rank))
    nodes: dict[int, dict[int, int]] = {}
    for r, (node, local) in enumerate(places):
        nodes.setdefault(node if shares_memory else r, {})[local] = r
    return [[ranks[i] for i in sorted(ranks)] for ranks in nodes.values()]


class _PassedRows:
    """The rows of another node, which this rank gets for all of its node."""

    def __init__(self, rows: list[Array], work: Any) -> None:
        self.rows, self.work = rows, work
        self.uses = 0


class _Copy:
    """The work of rows that this rank gets for others, too."""

    def __init__(self, answers: _Answers, passed: _PassedRows, to: list[Array]) -> None:
        self._answers, self._passed, self._to = answers, passed, to

    def wait(self) -> None:
        self._passed.work.wait()
        self._answers.pass_on()
        for row, out in zip(self._passed.rows, self._to):
            out[...] = row


class _Answers:
    """The thread of a :class:`RowService`, which does not keep the service alive."""

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm
        self.nodes = _nodes_of(comm)
        self._own = next(i for i, ranks in enumerate(self.nodes) if comm.rank in ranks)
        self.own_node = self.nodes[self._own]
        self.rows: dict[int, list[Array]] = {}  # those of this node, by number
        self.version = 0  # of the rows that this rank asks for
        self._lock = threading.RLock()
        self._passed: dict[Request, _PassedRows] = {}
        # Rows that have not arrived, and ranks that have asked for them.
        self._waiting: list[tuple[_PassedRows, int, int]] = []
        self._works: list[Any] = []
        self._count = 0
        self._others = {r for r in range(comm.size) if r != comm.rank}
        self._done: set[int] = set()  # ranks that ask for no more rows
        self._told: set[int] = set()  # ranks that know that this one does not
        self.is_updating = False
        self.is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rows", daemon=True)
        self._thread.start()
        _running.add(self)

    def add(self, row: Array) -> int:
        number, self._count = self._count, self._count + 1
        self.rows[number] = [
            self._comm.window_of_peer(row, local) if len(self.own_node) > 1 else row
            for local in range(len(self.own_node))
        ]
        return number

    def keep(self, numbers: set[int]) -> None:
        self.rows = {n: rows for n, rows in self.rows.items() if n in numbers}

    def forget_others(self) -> None:
        with self._lock:
            self.version += 1
            self._passed.clear()

    def asked_rank(self, request: Request) -> int:
        """Which rank gives this one rows: they take turns with rows and nodes.

        It is a rank of this node, except for the one that gets rows for this node.
        """
        ranks = self.nodes[request.node]
        turn = request.number + request.node
        asked = self.own_node[turn % len(self.own_node)]
        if asked != self._comm.rank:
            return asked
        return ranks[(request.number + self._own) % len(ranks)]

    def ask(self, asked: int, request: Request, rows: list[Array]) -> Work:
        """A work that asks a rank for rows, and receives them."""
        sent = numpy.array(request, numpy.int64)
        with self._lock:  # rows come in the order of requests
            tag = self._tag_of(request)
            received = self._comm.native.receive(rows, asked, tag, False)
            self._send([sent], asked, _REQUEST_TAG)
        return Work(received, lambda: rows)

    def passed_rows(self, request: Request) -> _PassedRows:
        """Rows that are kept until each rank of the node has asked for them."""
        with self._lock:
            passed = self._passed.get(request)
            if passed is None:
                like = self.rows[request.number][0]
                rows = [numpy.empty_like(like) for _ in self.nodes[request.node]]
                work = self.ask(self.asked_rank(request), request, rows)
                self._passed[request] = passed = _PassedRows(rows, work)
            passed.uses += 1
            if passed.uses == len(self.own_node):
                del self._passed[request]
            return passed

    def pass_on(self) -> None:
        """Sends rows that have arrived to the ranks that have asked for them."""
        with self._lock:
            arrived = [entry for entry in self._waiting if entry[0].work.test()]
            for entry in arrived:
                self._waiting.remove(entry)
        for passed, source, tag in arrived:
            self._send(passed.rows, source, tag)

    def end(self) -> None:
        """Waits until no rank asks any more."""
        self._thread.join()

    def _run(self) -> None:
        try:
            self._serve()
        except RankFailed:  # this rank's next call raises it, too
            pass
        self.rows = {}
        _running.discard(self)

    def _serve(self) -> None:
        last = time.monotonic()
        while not self._may_end(last):
            seconds = _BUSY_SECONDS if self._waiting else _IDLE_SECONDS
            found = self._comm.probe(tag=_REQUEST_TAG, timeout=seconds)
            if found is not None:
                self._answer(found.source)
                last = time.monotonic()
            self.pass_on()
            with self._lock:
                self._works = [work for work in self._works if not work.test()]

    def _may_end(self, last: float) -> bool:
        """Tells others when they need not answer any more; ``last``: of requests."""
        is_closing = self.is_closing.is_set()
        for r in self._others - self._told:
            # An update in which a rank that is done does not take part will fail.
            if is_closing or (self.is_updating and r in self._done):
                self._told.add(r)
                done = numpy.array(Request(_DONE, 0, 0), numpy.int64)
                self._send([done], r, _REQUEST_TAG)
        if not is_closing or self._works or self._waiting:
            return False
        is_late = _is_ending and time.monotonic() - last > _LAST_SECONDS
        return is_late or self._done == self._others

    def _answer(self, source: int) -> None:
        received = numpy.array(Request(0, 0, 0), numpy.int64)
        self._comm.native.receive([received], source, _REQUEST_TAG)
        request = Request(*received.tolist())
        if request.number == _DONE:
            self._done.add(source)
        elif request.node == self._own:
            self._send(self.rows[request.number], source, self._tag_of(request))
        else:
            passed = self.passed_rows(request)
            with self._lock:
                self._waiting.append((passed, source, self._tag_of(request)))

    def _send(self, xs: list[Array], dest: int, tag: int) -> None:
        with self._lock:
            self._works.append(self._comm.native.send(xs, dest, tag, False))

    def _tag_of(self, request: Request) -> int:
        return 1 + (request.number * len(self.nodes) + request.node) % _ROW_TAGS


_running: set[_Answers] = set()
_is_ending = False  # the process


def _end_all() -> None:
    """Before the process ends: answers until all ranks have come as far."""
    global _is_ending
    _is_ending = True
    running = list(_running)
    for answers in running:
        answers.is_closing.set()
    for answers in running:
        answers.end()


atexit.register(_end_all)
