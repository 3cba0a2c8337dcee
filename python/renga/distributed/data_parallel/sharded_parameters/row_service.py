"""Rows of parameters that other ranks ask for, whatever this rank is doing."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from typing import TYPE_CHECKING

import numpy

from renga.communicators import RankFailed

if TYPE_CHECKING:
    from renga.communicators import Communicator, Work
    from renga.communicators.communicator import Array

_REQUEST_TAG, _ROW_TAG = 0, 1
_DONE = -1  # in the place of a row's number: the sender will ask for no more rows
# The thread that answers looks for requests as often after the last one, and less and
# less often later.
_LEAST_SECONDS, _MOST_SECONDS, _GROWTH = 50e-6, 5e-3, 1.1


class RowService:
    """Gets rows of other ranks, which need not take part, and gives them this rank's.

    So a rank may compute alone with parameters of which others have the rest. Rows
    are numbered in the order in which they are added, which is the same on all ranks.
    A thread of each rank answers until no rank has a use for rows any more; a process
    does not end before.

    Every rank makes one at the same time.

    Args:
        comm: the ranks.
    """

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm.split(0, comm.rank)
        self._answers = _Answers(self._comm)
        self._others = [r for r in range(comm.size) if r != comm.rank]
        weakref.finalize(self, self._answers.is_closing.set)

    def add(self, row: Array) -> int:
        """The number of a row that others may ask for, once all ranks have added it."""
        return self._answers.add(row)

    def keep(self, numbers: set[int]) -> None:
        """Forgets all other rows, for which no rank asks any more."""
        self._answers.keep(numbers)

    def fetch(self, number: int, rows: Array) -> None:
        """Fills the rows of other ranks in an array (ranks, elements)."""
        request = numpy.array([number], numpy.int64)
        works = []
        for r in self._others:
            works.append(self._comm.recv(r, _ROW_TAG, out=rows[r], wait=False))
            works.append(self._comm.send(request, r, _REQUEST_TAG, wait=False))
        for work in works:
            work.wait()


class _Answers:
    """The thread of a :class:`RowService`, which does not keep the service alive."""

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm
        self._rows: dict[int, Array] = {}
        self._count = 0
        self._works: list[Work] = []
        self._waits_for = comm.size - 1  # ranks that may still ask
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
        pause, has_closed = _LEAST_SECONDS, False
        while True:
            if not has_closed and self.is_closing.is_set():
                has_closed = True
                for r in range(self._comm.size):
                    if r != self._comm.rank:
                        done = numpy.array([_DONE], numpy.int64)
                        self._works.append(
                            self._comm.send(done, r, _REQUEST_TAG, wait=False)
                        )
            found = self._comm.probe(tag=_REQUEST_TAG, timeout=0)
            if found is not None:
                self._answer(found.source)
                pause = _LEAST_SECONDS
                continue
            self._works = [work for work in self._works if not work.test()]
            if has_closed and not self._waits_for and not self._works:
                return
            time.sleep(pause)
            pause = min(_MOST_SECONDS, pause * _GROWTH)

    def _answer(self, source: int) -> None:
        (number,) = self._comm.recv(source, _REQUEST_TAG)
        if number == _DONE:
            self._waits_for -= 1
            return
        row = self._rows[int(number)]
        self._works.append(self._comm.send(row, source, _ROW_TAG, wait=False))


_running: set[_Answers] = set()


def _end_all() -> None:
    """Before the process ends: answers until all ranks have come as far."""
    running = list(_running)
    for answers in running:
        answers.is_closing.set()
    for answers in running:
        answers.end()


atexit.register(_end_all)
