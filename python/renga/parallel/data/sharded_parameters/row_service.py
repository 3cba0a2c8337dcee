"""Rows of parameters that other ranks ask for, whatever this rank is doing."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from typing import Any

import numpy

from renga.communicators import Communicator, RankFailed, Work
from renga.communicators.arrays import Array

_REQUEST_TAG, _ROW_TAGS = 0, 32766  # the least that MPI allows, without this one
_DONE = -1  # in the place of a row's number: the sender asks for no more rows
# The thread that answers looks for requests as often after the last one, and less and
# less often later.
_LEAST_SECONDS, _MOST_SECONDS, _GROWTH = 50e-6, 5e-3, 1.1
# A process that has come to its end does not wait longer for requests.
_LAST_SECONDS = 60.0


class RowService:
    """Gets rows of other ranks, which need not take part, and gives them this rank's.

    So a rank may compute alone with parameters of which others have the rest. Rows
    are numbered in the order in which they are added, which is the same on all ranks.
    A thread of each rank answers until no rank has a use for rows any more. A process
    does not end before, unless the others wait for it in an update.

    A row of another node goes to one rank of this node, which the others of the node
    ask for it.

    Every rank makes one at the same time.

    Args:
        comm: the ranks.
    """

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm.split(0, comm.rank)
        self._asked = _asked_ranks(self._comm)
        self._answers = _Answers(self._comm)
        self._lock = threading.Lock()
        self._others = [r for r in range(comm.size) if r != comm.rank]
        weakref.finalize(self, self._answers.is_closing.set)

    def add(self, row: Array) -> int:
        """The number of a row that others may ask for, once all ranks have added it."""
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

    def fetch(self, number: int, rows: Array) -> list[Any]:
        """Works that fill the rows of other ranks in an array (ranks, elements)."""
        works: list[Any] = []
        with self._lock:  # rows come in the order of requests
            for r in self._others:
                if self._asked[r] == self._comm.rank:
                    row = self._answers.passed_row(number, r, self._answers.version)
                    works.append(_Copy(row, rows[r]))
                else:
                    request = (number, r, self._answers.version)
                    works += _ask(self._comm, self._asked[r], request, rows[r])
        return works


def _asked_ranks(comm: Communicator) -> list[int]:
    """Which rank gives this one the row of each: one of its own node."""
    places = comm.allgather_obj((comm.inter_rank, comm.intra_rank))
    node = [r for r, (i, _) in enumerate(places) if i == comm.inter_rank]
    return [
        r if r in node or len(node) == 1 else node[local % len(node)]
        for r, (_, local) in enumerate(places)
    ]


def _ask(
    comm: Communicator, asked: int, request: tuple[int, int, int], out: Array
) -> tuple[Any, Any]:
    """Works that ask a rank for a row, and receive it.

    Args:
        request: the row's number, its rank and version.
    """
    number, r, _ = request
    received = comm.recv(asked, _tag_of(comm, number, r), out=out, wait=False)
    sent = numpy.array(request, numpy.int64)
    return received, comm.send(sent, asked, _REQUEST_TAG, wait=False)


def _tag_of(comm: Communicator, number: int, r: int) -> int:
    return 1 + (number * comm.size + r) % _ROW_TAGS


class _PassedRow:
    """A row of another node, which this rank gets for all of its node."""

    def __init__(
        self, comm: Communicator, request: tuple[int, int, int], like: Array
    ) -> None:
        self.array = numpy.empty_like(like)
        self.works = _ask(comm, request[1], request, self.array)
        self.uses = 0


class _Copy:
    """The work of a row that this rank gets for others, too."""

    def __init__(self, row: _PassedRow, out: Array) -> None:
        self._row, self._out = row, out

    def wait(self) -> None:
        for work in self._row.works:
            work.wait()
        self._out[...] = self._row.array


class _Answers:
    """The thread of a :class:`RowService`, which does not keep the service alive."""

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm
        self.version = 0  # of the rows that this rank asks for
        self._passed: dict[tuple[int, int, int], _PassedRow] = {}
        self._passed_lock = threading.Lock()
        # Rows that have not arrived, and ranks that have asked for them.
        self._waiting: list[tuple[_PassedRow, int, int]] = []
        self._rows: dict[int, Array] = {}
        self._count = 0
        self._works: list[Work] = []
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
        self._rows[number] = row
        return number

    def keep(self, numbers: set[int]) -> None:
        self._rows = {n: row for n, row in self._rows.items() if n in numbers}

    def forget_others(self) -> None:
        with self._passed_lock:
            self.version += 1
            self._passed.clear()

    def passed_row(self, number: int, r: int, version: int) -> _PassedRow:
        """A row that is kept until each rank of the node has asked for it."""
        request = (number, r, version)
        with self._passed_lock:
            row = self._passed.get(request)
            if row is None:
                row = _PassedRow(self._comm, request, self._rows[number])
                self._passed[request] = row
            row.uses += 1
            if row.uses == self._comm.intra_size:
                del self._passed[request]
            return row

    def end(self) -> None:
        """Waits until no rank asks any more."""
        self._thread.join()

    def _run(self) -> None:
        try:
            self._serve()
        except RankFailed:  # this rank's next call raises it, too
            pass
        self._rows = {}
        _running.discard(self)

    def _serve(self) -> None:
        pause, last = _LEAST_SECONDS, time.monotonic()
        while not self._may_end(last):
            found = self._comm.probe(tag=_REQUEST_TAG, timeout=0)
            if found is not None:
                self._answer(found.source)
                pause, last = _LEAST_SECONDS, time.monotonic()
                continue
            self._works = [work for work in self._works if not work.test()]
            if self._pass_on():
                pause = _LEAST_SECONDS
            time.sleep(pause)
            pause = min(_MOST_SECONDS, pause * _GROWTH)

    def _may_end(self, last: float) -> bool:
        """Tells others when they need not answer any more; ``last``: of requests."""
        is_closing = self.is_closing.is_set()
        for r in self._others - self._told:
            # An update in which a rank that is done does not take part will fail.
            if is_closing or (self.is_updating and r in self._done):
                self._told.add(r)
                self._send(numpy.array([_DONE], numpy.int64), r, _REQUEST_TAG)
        if not is_closing or self._works or self._waiting:
            return False
        is_late = _is_ending and time.monotonic() - last > _LAST_SECONDS
        return is_late or self._done == self._others

    def _answer(self, source: int) -> None:
        (number, *which) = self._comm.recv(source, _REQUEST_TAG).tolist()
        if number == _DONE:
            self._done.add(source)
            return
        r, version = which
        tag = _tag_of(self._comm, number, r)
        if r == self._comm.rank:
            self._send(self._rows[number], source, tag)
        else:
            self._waiting.append((self.passed_row(number, r, version), source, tag))

    def _pass_on(self) -> bool:
        """Sends rows that have arrived to the ranks that have asked for them."""
        arrived = [entry for entry in self._waiting if entry[0].works[0].test()]
        for row, source, tag in arrived:
            self._waiting.remove((row, source, tag))
            self._send(row.array, source, tag)
        return bool(arrived)

    def _send(self, x: Array, dest: int, tag: int) -> None:
        self._works.append(self._comm.send(x, dest, tag, wait=False))


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
