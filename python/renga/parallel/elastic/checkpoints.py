"""Checkpoints that are written once, in the background, and load on other ranks."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy

from renga.communicators import Communicator
from renga.core.serializer import Serializable
from renga.core.types import Path
from renga.extensions.snapshots.snapshot_writers import TakenState
from renga.parallel.data.extensions import resized
from renga.parallel.elastic.index import Index, Parts, digest_of, share_out
from renga.parallel.elastic.intervals import Pace
from renga.parallel.elastic.run import Leave, is_asked_to_leave
from renga.serializers.npz import save_npz, serialize
from renga.training import extension
from renga.training.trainer import Trainer
from renga.utils.argument import check_count, check_number


class Checkpoints(extension.Extension):
    """Saves training, and goes on from the newest complete checkpoint::

        trainer.extend(elastic.Checkpoints(comm, "checkpoints"), trigger=(1, "epoch"))

    or, in a loop of one's own, with any object that has ``serialize``::

        checkpoints = elastic.Checkpoints(comm, "checkpoints")
        iteration = checkpoints.load(state)
        ...
        checkpoints.save(state, iteration)

    An array that several ranks have is written by one of them, and the ranks share the
    work; what differs between them, such as random states, is written for each. Files
    are written in the background, from copies. A checkpoint is complete once its index
    and all parts exist; each appears atomically. Any number of ranks loads it: a rank
    that did not exist before keeps its random state.

    The newest checkpoints remain at the end of training, so that it can be extended.

    Args:
        comm: the ranks.
        folder: of the files; all ranks have to see the same.
        kept: how many complete checkpoints remain.
        hours_between_failures: of any of the ranks, on average. Then a trainer saves as
            often as loses the least time, by Daly's estimate from how long saving takes
            here: it begins with each iteration, and waits twice as long each time
            until that is reached.

    Raises:
        FileNotFoundError: a rank does not see the folder that rank 0 has made.
        ValueError: ``kept`` is below 1, or hours are not above 0.
    """

    trigger = (1, "epoch")
    priority = extension.PRIORITY_SNAPSHOT
    saves_trainer = True
    autoload = True

    def __init__(
        self,
        comm: Communicator,
        folder: Path,
        kept: int = 2,
        hours_between_failures: float | None = None,
    ) -> None:
        check_count("Checkpoints: kept", kept)
        self._pace = None
        if hours_between_failures is not None:
            name = "Checkpoints: hours_between_failures"
            check_number(name, hours_between_failures, 0, is_above=True)
            self._pace = Pace(comm, 3600 * hours_between_failures)
            self.trigger = (1, "iteration")
        self.comm = comm
        self.folder = os.fsdecode(folder)
        self.kept = kept
        self._write: _Write | None = None
        self._mark = comm.bcast_obj(secrets.token_hex(4))
        self._check_folder()

    def _check_folder(self) -> None:
        """Raises on all ranks if one of them sees another folder."""
        marker = os.path.join(self.folder, f".{self._mark}")
        if self.comm.rank == 0:
            os.makedirs(self.folder, exist_ok=True)
            open(marker, "wb").close()
        self.comm.barrier()
        found = self.comm.allgather_obj(os.path.exists(marker))
        if self.comm.rank == 0:
            os.remove(marker)
        if not all(found):
            blind = [rank for rank, seen in enumerate(found) if not seen]
            raise FileNotFoundError(
                f"Checkpoints: expected a folder that all ranks see, got "
                f"{self.folder!r}, which rank 0 has made and ranks {blind} do not see"
            )

    def initialize(self, trainer: Trainer) -> None:
        """Goes on from the newest checkpoint, if there is one."""
        self.load(trainer)

    def __call__(self, trainer: Trainer) -> None:
        """Saves the trainer, if it is time to."""
        iteration = trainer.updater.iteration
        if self._pace is None:
            self.save(trainer, iteration)
        elif self._pace.is_due(iteration):
            with self._pace.saving(iteration):
                self.save(trainer, iteration)

    def save(self, target: Serializable, iteration: int) -> None:
        """Saves ``target`` in the background; every rank calls it.

        It waits for the previous checkpoint. In a job that ``elastic.run`` was asked to
        end, because one of another size stands by, it does not return.

        Raises:
            OSError: this or the previous checkpoint could not be written.
            ValueError: ``iteration`` is below 0.
        """
        check_count("Checkpoints.save: iteration", iteration, 0)
        self.finalize()
        state = serialize(target)
        own = {key: digest_of(array) for key, array in state.items()}
        told = own, self.comm.inter_rank, is_asked_to_leave()
        digests, nodes, asked = zip(*self.comm.allgather_obj(told))
        entries = share_out(digests)
        part = {
            key: numpy.array(state[key])
            for key, writers in entries.items()
            if self.comm.rank in writers
        }
        index = Index(int(iteration), self._mark, self.comm.size, entries, nodes)
        is_first = self.comm.rank == 0
        name = index.part(self.comm.rank)
        self._write = _Write(self, name, part, index if is_first else None)
        if any(asked):
            self.finalize()
            self.comm.barrier()
            raise Leave

    def load(self, target: Serializable) -> int | None:
        """Loads the newest complete checkpoint; every rank calls it.

        One with a damaged file is skipped, with a warning.

        Returns:
            Its iteration; None if there is none.

        Raises:
            Exception: any that ``load_npz`` raises.
        """
        rank, size = self.comm.rank, self.comm.size
        found = None
        if rank == 0:
            found = list(Index.complete(self.folder))
        nodes = self.comm.allgather_obj(self.comm.inter_rank)
        for index in self.comm.bcast_obj(found):
            source, is_new = index.source_of(rank, nodes)
            with self._opened(index, source) as parts:
                is_whole = parts is not None and parts.are_whole()
                if all(self.comm.allgather_obj(is_whole)):
                    resized.load(parts, target, rank, size, parts.name, is_new)
                    return int(index.iteration)
            warnings.warn(
                f"checkpoint {index.iteration} is skipped: one of its files is damaged",
                stacklevel=2,
            )
        return None

    @contextlib.contextmanager
    def _opened(self, index: Index, source: int) -> Iterator[Any]:
        """What rank ``source`` has saved; None if it cannot be read."""
        with contextlib.ExitStack() as files:
            try:
                parts = Parts(index, self.folder, source, files)
            except (OSError, ValueError):
                parts = None
            yield parts

    def finalize(self) -> None:
        """Waits until this rank's part is written.

        Raises:
            OSError: it could not be.
        """
        write, self._write = self._write, None
        if write is not None:
            write.finish()


class _Write(threading.Thread):
    """Writes one rank's part, and on rank 0 the index."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        name: str,
        part: dict[str, numpy.ndarray],
        index: Index | None,
    ) -> None:
        super().__init__(name="checkpoint")
        self._folder, self._kept = checkpoints.folder, checkpoints.kept
        self._path = os.path.join(self._folder, name)
        self._part = part
        self._index = index
        self._error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            save_npz(self._path, TakenState(self._part), compression=False)
            if self._index is not None:
                self._index.write(self._folder)
                Index.remove_old(self._folder, self._kept)
        except Exception as error:
            self._error = error

    def finish(self) -> None:
        """Waits, and raises what went wrong."""
        self.join()
        if self._error is not None:
            raise self._error
