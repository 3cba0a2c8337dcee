"""What all ranks do together now and then in training, which may end on one earlier."""

from __future__ import annotations

import contextlib

import numpy

from renga.communicators import Communicator, RankFailed
from renga.training.extension import Extension

_SECONDS = 1.0  # between two looks at whether training has ended on another rank


class Rounds:
    """Counts what the ranks do together, so that none waits for one that has ended.

    Args:
        name: of what they do, for the error.
        comm: the ranks; all of them make one.
    """

    def __init__(self, name: str, comm: Communicator) -> None:
        self._name = name
        # Messages of its own: others of the communicator's do not mix with them.
        self._comm = comm.split(0, comm.rank)
        self._count = 0
        self._ends = 0  # of training on this rank, which may be run again
        # Ranks have told how often their training has ended, and their count then.
        self._ended: dict[int, tuple[int, int]] = {}

    def begin(self) -> None:
        """Returns once every rank has called it as often as this one.

        Raises:
            RuntimeError: a rank has ended training before.
        """
        self._count += 1
        work = self._comm.all_gather(numpy.array(self._count), wait=False)
        while True:
            try:
                work.wait(_SECONDS)
                return
            except TimeoutError:
                if work.error is not None:
                    raise
            self._check()

    def _check(self) -> None:
        with contextlib.suppress(RankFailed):  # all others have exited
            while (found := self._comm.probe(timeout=0)) is not None:
                ends, count = self._comm.recv(found.source, found.tag).tolist()
                self._ended[found.source] = ends, count
        for rank, (ends, count) in self._ended.items():
            if ends > self._ends and count < self._count:
                raise RuntimeError(
                    f"{self._name}: expected all ranks to take part until training "
                    f"ends on all of them, got {self._count} times on rank "
                    f"{self._comm.rank} and {count} times on rank {rank}, where it "
                    "has ended"
                )

    def end(self) -> None:
        """Tells the other ranks that training has ended on this one."""
        self._ends += 1
        notice = numpy.array([self._ends, self._count])
        for rank in range(self._comm.size):
            if rank != self._comm.rank:
                self._comm.send(notice, rank, wait=False)

    def end_with(self, extension: Extension) -> None:
        """Has an extension call ``end`` where it is finalized."""
        finalize = getattr(extension, "finalize", None)

        def end_and_finalize() -> None:
            self.end()
            if finalize is not None:
                finalize()

        extension.finalize = end_and_finalize  # type: ignore[method-assign]
