"""Snapshots of which each set of ranks with the same state writes one file."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy

from renga.communicators import Communicator
from renga.extensions.snapshots.files import find_snapshots
from renga.extensions.snapshots.snapshot_writers import TakenState, Writer
from renga.parallel.data.extensions import resized
from renga.parallel.data.extensions.rounds import Rounds
from renga.parallel.data.optimizers.multi_node_optimizer import BUCKET_HOOK
from renga.serializers.npz import open_archive
from renga.training import extension
from renga.training.extension import Extension
from renga.training.trainer import Trainer

_PART = "multi_node/rank_{}/"  # before the names of what only this rank has


def multi_node_snapshot(
    comm: Communicator, snapshot: Extension, replica_sets: Sequence[int | Sequence[int]]
) -> MultiNodeSnapshot:
    """An extension that takes ``snapshot`` once for each set of ranks.

    Args:
        comm: the communicator of all ranks.
        snapshot: the result of ``snapshot()``; the rank that writes is appended to
            its file names.
        replica_sets: the ranks of each set, which have the same state, or a single
            rank; ranks in none of them form one more set. With one set, data-parallel
            training resumes on any number of ranks.

    Raises:
        ValueError: a rank is in two sets, or there is no such rank.
    """
    return MultiNodeSnapshot(comm, snapshot, replica_sets)


class MultiNodeSnapshot(extension.Extension):
    """The lowest rank of each set writes; every rank loads the file of its set.

    With ``autoload``, the newest snapshot is loaded that all sets have written.
    """

    saves_trainer = True

    def __init__(
        self,
        comm: Communicator,
        snapshot: Any,
        replica_sets: Sequence[int | Sequence[int]],
    ) -> None:
        sets = _complete(replica_sets, comm.size)
        self.comm = comm
        self.snapshot = snapshot
        self.trigger = snapshot.trigger
        self.priority = snapshot.priority
        own = next(i for i, ranks in enumerate(sets) if comm.rank in ranks)
        self._set = sorted(sets[own])
        self.is_master = comm.rank == self._set[0]
        self._peers = comm.split(own, comm.rank)
        name, suffix = snapshot.filename, f".{comm.rank}"
        if callable(name):
            self.snapshot.filename = lambda trainer: name(trainer) + suffix
        else:
            self.snapshot.filename = name + suffix
        inner = snapshot.writer if self.is_master else None
        self._nodes = comm.allgather_obj(comm.inter_rank)
        self._writer = _WriterOfOneRank(inner, self._nodes)
        self.snapshot.writer = self._writer
        self._rounds = Rounds("multi_node_snapshot", self._peers)

    @property
    def autoload(self) -> bool:
        """Whether ``initialize`` resumes, and so comes before other extensions'."""
        return bool(self.snapshot.autoload)

    def initialize(self, trainer: Trainer) -> None:
        """Resumes if the snapshot has ``autoload``; then prepares it for writing."""
        if self.snapshot.autoload:
            self._resume(trainer)
            self.snapshot.autoload = False
        if self.is_master:
            self.snapshot.initialize(trainer)

    def _resume(self, trainer: Any) -> None:
        suffix = f".{self.comm.rank}"
        paths: list[str] = []
        if self.is_master:
            paths = find_snapshots(self.snapshot.filename, trainer.out)
        names = [os.path.basename(path)[: -len(suffix)] for path in paths]
        gathered = self.comm.allgather_obj((self.is_master, names))
        lists = [names for is_writer, names in gathered if is_writer]
        common = [name for name in lists[0] if all(name in other for other in lists)]
        if not common:
            return
        # Only the rank that writes needs to see the file.
        data = None
        if self.is_master:
            with open(os.path.join(trainer.out, common[-1] + suffix), "rb") as file:
                data = file.read()
        data = self._peers.bcast_obj(data)
        target = self.snapshot.target_in(trainer)
        with open_archive(io.BytesIO(data)) as archive:
            rank, size = self.comm.rank, self.comm.size
            own = _PartsOf(rank, self._nodes, archive)
            resized.load(own, target, rank, size, common[-1] + suffix)

    def __call__(self, trainer: Trainer) -> None:
        """Takes the snapshot on all ranks; one rank of each set writes it."""
        self.snapshot(trainer)
        parts: list[dict[str, numpy.ndarray]] = []
        if len({self._nodes[rank] for rank in self._set}) > 1:
            self._rounds.begin()
            parts = self._peers.gather_obj(self._writer.part()) or []
        self._writer.write(dict(zip(self._set, parts)))

    def on_error(
        self, trainer: Trainer, exc: Exception, tb: TracebackType | None
    ) -> None:
        """As the snapshot does, without what other ranks keep."""
        self.snapshot.on_error(trainer, exc, tb)
        self._writer.write({})

    def finalize(self) -> None:
        """Waits until everything is written."""
        self._rounds.end()
        self.snapshot.finalize()


class _WriterOfOneRank(Writer):
    """Adds what the ranks are to what it writes; on other ranks it writes nothing."""

    def __init__(self, writer: Any, nodes: Sequence[int]) -> None:
        super().__init__()
        self._writer = writer
        self._nodes = nodes
        self._taken: tuple[str, str, dict[str, Any]] | None = None

    def __call__(self, filename: str, outdir: str, target: Any) -> None:
        self._taken = filename, outdir, target

    def part(self) -> dict[str, numpy.ndarray]:
        """What only this rank has of the state that was taken last."""
        state = {} if self._taken is None else self._taken[2]
        return {key: value for key, value in state.items() if _is_of_one_rank(key)}

    def write(self, parts: dict[int, dict[str, numpy.ndarray]]) -> None:
        """Writes what was taken, with such parts of ranks, by their numbers."""
        taken, self._taken = self._taken, None
        if taken is None or self._writer is None:
            return
        filename, outdir, target = taken
        marked = TakenState(target)
        marked[resized.RANKS] = numpy.array(len(self._nodes))
        marked[resized.NODES] = numpy.array(self._nodes)
        for rank, part in parts.items():
            for key, value in part.items():
                marked[_PART.format(rank) + key] = value
        self._writer(filename, outdir, marked)

    def _add_cleanup_hook(self, hook: Any) -> None:
        if self._writer is not None:
            self._writer._add_cleanup_hook(hook)

    def finalize(self) -> None:
        if self._writer is not None:
            self._writer.finalize()


class _PartsOf(Mapping[str, Any]):
    """A file as a rank reads it: its own parts take the place of the writer's."""

    def __init__(self, rank: int, nodes: Sequence[int], archive: Any) -> None:
        self._archive = archive
        ranks = resized.ranks_of(archive) or len(nodes)
        source, _ = resized.source_of(rank, nodes, ranks, resized.nodes_of(archive))
        self._prefix = _PART.format(source)

    def __getitem__(self, key: str) -> Any:
        own = self._prefix + key
        is_own = _is_of_one_rank(key) and own in self._archive
        return self._archive.entry(own if is_own else key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._archive)

    def __len__(self) -> int:
        return len(self._archive)


def _is_of_one_rank(key: str) -> bool:
    return BUCKET_HOOK in key.split("/")


def _complete(
    replica_sets: Sequence[int | Sequence[int]], size: int
) -> list[list[int]]:
    sets = [[r] if isinstance(r, int) else list(r) for r in replica_sets]
    listed = [rank for ranks in sets for rank in ranks]
    if len(set(listed)) < len(listed) or not set(listed) <= set(range(size)):
        raise ValueError(
            f"multi_node_snapshot: expected disjoint sets of ranks in [0, {size}), "
            f"got {sets}"
        )
    rest = [rank for rank in range(size) if rank not in listed]
    return [ranks for ranks in [*sets, rest] if ranks]
