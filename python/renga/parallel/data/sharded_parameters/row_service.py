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

_REQUEST_TAG, _ROW_TAG = 0, 1
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

    Every rank makes one at the same time.

    Args:
        comm: the ranks.
    """

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm.split(0, comm.rank)
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

    def fetch(self, number: int, rows: Array) -> list[Any]:
        """Works that fill the rows of other ranks in an array (ranks, elements)."""
        request = numpy.array([number], numpy.int64)
        works: list[Any] = []
        with self._lock:  # rows come in the order of requests
            for r in self._others:
                works.append(self._comm.recv(r, _ROW_TAG, out=rows[r], wait=False))
                works.append(self._comm.send(request, r, _REQUEST_TAG, wait=False))
        return works


class _Answers:
    """The thread of a :class:`RowService`, which does not keep the service alive."""

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm
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
        if not is_closing or self._works:
            return False
        is_late = _is_ending and time.monotonic() - last > _LAST_SECONDS
        return is_late or self._done == self._others

    def _answer(self, source: int) -> None:
        (number,) = self._comm.recv(source, _REQUEST_TAG)
        if number == _DONE:
            self._done.add(source)
        else:
            self._send(self._rows[int(number)], source, _ROW_TAG)

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
