"""Checkpoints of all ranks, and resuming from the newest complete one."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
import warnings
from collections.abc import Sequence
from typing import NamedTuple

from renga.communicators import Communicator
from renga.core.optimizer import Optimizer
from renga.parallel.data.extensions import resized
from renga.serializers import npz
from renga.training import extension
from renga.training.trainer import Trainer


class _Intact(NamedTuple):
    """A file that can be read."""

    rank: int
    iteration: int
    ranks: int  # that have saved; 0 if that is not known
    nodes: tuple[int, ...]  # of these; none if they are not known


def create_multi_node_checkpointer(
    name: str,
    comm: Communicator,
    cp_interval: int = 5,
    gc_interval: int = 5,
    path: str | os.PathLike[str] | None = None,
) -> MultiNodeCheckpointer:
    """An extension that saves training on every rank, and resumes it.

    Args:
        name: of the files: ``name.rank.iteration``.
        comm: the communicator.
        cp_interval: at least this many of the newest checkpoints are kept.
        gc_interval: after how many checkpoints older ones are removed.
        path: directory of the files; that of the trainer by default.
    """
    return MultiNodeCheckpointer(name, comm, cp_interval, gc_interval, path)


class MultiNodeCheckpointer(extension.Extension):
    """Saves the trainer; ``maybe_load`` resumes from the newest complete checkpoint.

    Files are written atomically, and a checkpoint is complete once all ranks have
    written theirs. The files are removed at the end of training. They can be loaded
    with another number of ranks, if all ranks can read them.
    """

    trigger = (1, "epoch")
    priority = extension.PRIORITY_SNAPSHOT
    saves_trainer = True

    def __init__(
        self,
        name: str,
        comm: Communicator,
        cp_interval: int,
        gc_interval: int,
        path: str | os.PathLike[str] | None,
    ) -> None:
        self.name = name
        self.comm = comm
        self.cp_interval = cp_interval
        self.gc_interval = gc_interval
        self.path = path
        self._file_name = name
        self._pattern = re.compile(re.escape(str(name)) + r"\.(\d+)\.(\d+)")
        self._saved = 0
        self.stats = CheckpointStats()

    def __call__(self, trainer: Trainer) -> None:
        """Saves the trainer."""
        if self.path is None:
            self.path = trainer.out
        self.save(trainer, trainer.updater.iteration)

    def save(self, target: Trainer, iteration: int) -> None:
        """Saves ``target`` for an iteration; every rank has to call it."""
        self.stats.start()
        os.makedirs(self._folder, exist_ok=True)
        nodes = self.comm.allgather_obj(self.comm.inter_rank)
        marked = resized.Marked(target, nodes)
        npz.save_npz(self._file(self.comm.rank, iteration), marked, compression=False)
        self.stats.end()
        self._saved += 1
        if self._saved % self.gc_interval == 0:
            self._collect()

    def maybe_load(
        self,
        trainer: Trainer,
        optimizer: Optimizer | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        """Loads the newest complete checkpoint, if there is one; all ranks call it.

        A checkpoint with a damaged file is skipped, with a warning.

        Args:
            trainer: what was saved.
            optimizer: has no effect; the trainer's optimizer is loaded with it.
            path: directory of the files, if it is not that of this checkpointer.

        Raises:
            Exception: any that ``load_npz`` raises.
        """
        if path is not None:
            self.path = path
        elif self.path is None:
            self.path = trainer.out
        rank, size = self.comm.rank, self.comm.size
        told = self.comm.allgather_obj((self._readable(), self.comm.inter_rank))
        for iteration, sources in self._complete(*zip(*told)):
            source, is_new = sources[rank]
            file = self._file(source, iteration)
            with npz.open_archive(file) as archive:
                if all(self.comm.allgather_obj(archive.is_whole())):
                    resized.load(archive, trainer, rank, size, file, is_new)
                    return
            warnings.warn(
                f"checkpoint {iteration} is skipped: one of its files is damaged",
                stacklevel=2,
            )

    def _complete(
        self, readable: Sequence[set[_Intact]], nodes: Sequence[int]
    ) -> list[tuple[int, list[tuple[int, bool]]]]:
        """Iterations that all ranks can load, newest first, and each rank's source."""
        anywhere = set().union(*readable)
        found = []
        for i, size, old in sorted({each[1:] for each in anywhere}, reverse=True):
            n = size or self.comm.size
            ranks = range(self.comm.size)
            sources = [resized.source_of(rank, nodes, n, old) for rank in ranks]
            is_complete = all((r, i, size, old) in anywhere for r in range(n))
            is_loadable = all(
                (r, i, size, old) in own for (r, _), own in zip(sources, readable)
            )
            if is_complete and is_loadable:
                found.append((i, sources))
        return found

    def _readable(self) -> set[_Intact]:
        found = set()
        for rank, iteration in self._listed():
            with contextlib.suppress(OSError, ValueError, TypeError):
                with npz.open_archive(self._file(rank, iteration)) as archive:
                    ranks = resized.ranks_of(archive) or 0
                    nodes = tuple(resized.nodes_of(archive))
                found.add(_Intact(rank, iteration, ranks, nodes))
        return found

    def _listed(self) -> list[tuple[int, int]]:
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return []
        matches = filter(None, map(self._pattern.fullmatch, names))
        return [(int(match[1]), int(match[2])) for match in matches]

    def _collect(self) -> None:
        """Removes this rank's old files; the newest complete checkpoints are kept."""
        own = {i for rank, i in self._listed() if rank == self.comm.rank}
        common = set.intersection(*self.comm.allgather_obj(own))
        kept = sorted(common)[-self.cp_interval :]
        for iteration in own:
            if kept and iteration < kept[0]:
                self._remove(iteration)

    def _remove(self, iteration: int) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.remove(self._file(self.comm.rank, iteration))

    @property
    def _folder(self) -> str:
        return os.fspath(self.path or ".")

    def _file(self, rank: int, iteration: int) -> str:
        return os.path.join(self._folder, f"{self._file_name}.{rank}.{iteration}")

    def finalize(self) -> None:
        """Removes this rank's files at the regular end of training.

        They are kept after an error, an interrupt, or the signal that ends the other
        ranks of a job.
        """
        if sys.exc_info()[0] is not None:
            return
        for rank, iteration in self._listed():
            if rank == self.comm.rank:
                self._remove(iteration)

    def get_stats(self) -> str:
        """A text that says how long saving took."""
        return self.stats.report()


class CheckpointStats:
    """How long the writing of checkpoints took, between ``start`` and ``end``."""

    def __init__(self) -> None:
        self._seconds: list[float] = []
        self._began: float | None = None

    def start(self) -> None:
        """Begins to measure a checkpoint."""
        self._began = time.perf_counter()

    def end(self) -> None:
        """Ends what ``start`` began, if anything."""
        if self._began is not None:
            self._seconds.append(time.perf_counter() - self._began)
            self._began = None

    def report(self) -> str:
        """Mean, least and most of the seconds."""
        if not self._seconds:
            return "No stats available"
        mean = sum(self._seconds) / len(self._seconds)
        least, most = min(self._seconds), max(self._seconds)
        return f"seconds per checkpoint: mean {mean:f}, min {least:f}, max {most:f}"
