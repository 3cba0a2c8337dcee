"""Which rank has written which array of a checkpoint."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import numpy

from renga.parallel.data.extensions import resized
from renga.serializers.atomic import atomic_write
from renga.serializers.npz import open_archive
from renga.serializers.stored import Entry, entry_of

# An array has, for each rank, the rank that has written it; None where a rank has none.
Writers = dict[str, list[Optional[int]]]

_INDEX = re.compile(r"(\d+)\.json")
_PART = re.compile(r"(\d+)\.[0-9a-f]+\.\d+\.npz")
# Small arrays, as random states are, differ between ranks; large ones seldom do.
_SMALL_BYTES = 1 << 16


class Digest(NamedTuple):
    """What arrays of the same contents have in common."""

    bytes: int
    text: str


def digest_of(array: numpy.ndarray) -> Digest:
    """By dtype, shape and elements."""
    if array.dtype.hasobject:
        return Digest(0, "None")
    data = numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8).data
    if array.nbytes <= _SMALL_BYTES:
        contents = hashlib.sha256(data).hexdigest()
    else:
        contents = f"{zlib.crc32(data):08x}"
    return Digest(array.nbytes, f"{array.dtype.str} {array.shape} {contents}")


def share_out(digests: Sequence[Mapping[str, Digest]]) -> Writers:
    """The ranks that write: one of those that have the same array, the least busy.

    Args:
        digests: of each rank's arrays.
    """
    sizes: dict[str, int] = {}
    for own in digests:
        for key, digest in own.items():
            sizes[key] = max(digest.bytes, sizes.get(key, 0))
    busy = [0] * len(digests)
    writers: Writers = {}
    for key in sorted(sizes, key=lambda key: (-sizes[key], key)):
        writer_of: dict[Digest | None, int | None] = {None: None}
        for found in dict.fromkeys(own[key] for own in digests if key in own):
            owners = [r for r, own in enumerate(digests) if own.get(key) == found]
            writer = min(owners, key=busy.__getitem__)
            busy[writer] += found.bytes
            writer_of[found] = writer
        writers[key] = [writer_of[own.get(key)] for own in digests]
    return writers


@dataclasses.dataclass(frozen=True)
class Index:
    """The contents of a checkpoint.

    Attributes:
        iteration: of training.
        mark: of the job, part of the names of its files.
        ranks: their number.
        writers: of the arrays.
        nodes: the number of each rank's node; files of 0.1.0 have none.
    """

    iteration: int
    mark: str
    ranks: int
    writers: Writers
    nodes: Sequence[int] = ()

    def source_of(self, rank: int, nodes: Sequence[int]) -> tuple[int, bool]:
        """As ``resized.source_of``."""
        return resized.source_of(rank, nodes, self.ranks, self.nodes)

    def part(self, rank: int) -> str:
        """The name of the file that a rank has written."""
        return f"{self.iteration}.{self.mark}.{rank}.npz"

    def parts(self) -> set[str]:
        """The names of all files that the checkpoint needs."""
        ranks = {rank for writers in self.writers.values() for rank in writers}
        return {self.part(rank) for rank in ranks if rank is not None}

    def write(self, folder: str) -> None:
        """Writes it, atomically."""
        path = os.path.join(folder, f"{self.iteration}.json")
        with atomic_write(path, "w") as file:
            json.dump(dataclasses.asdict(self), file)

    @classmethod
    def complete(cls, folder: str) -> Iterator[Index]:
        """Those in a folder whose files all exist, the newest first."""
        names = set(os.listdir(folder))
        matches = filter(None, map(_INDEX.fullmatch, names))
        for match in sorted(matches, key=lambda match: -int(match[1])):
            with contextlib.suppress(OSError, ValueError, TypeError):
                with open(os.path.join(folder, match[0])) as file:
                    index = cls(**json.load(file))
                if index.parts() <= names:
                    yield index

    @classmethod
    def remove_old(cls, folder: str, kept: int) -> None:
        """Removes what is older than the newest complete checkpoints."""
        complete = list(cls.complete(folder))[:kept]
        if len(complete) < kept:
            return
        # An index goes before its parts.
        for name in sorted(os.listdir(folder), key=lambda name: ".npz" in name):
            match = _INDEX.fullmatch(name) or _PART.fullmatch(name)
            if match is not None and int(match[1]) < complete[-1].iteration:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(os.path.join(folder, name))


class Parts(Mapping[str, Any]):
    """The arrays that a rank has saved, as entries, and the number of ranks that did.

    Raises:
        OSError, ValueError: a file cannot be read.
    """

    def __init__(
        self, index: Index, folder: str, source: int, files: contextlib.ExitStack
    ) -> None:
        self.name = os.path.join(folder, f"{index.iteration}.json")
        self._ranks = index.ranks
        self._writers: dict[str, int] = {}
        for key, writers in index.writers.items():
            writer = writers[source]
            if writer is not None:
                self._writers[key] = writer
        self._archives = {
            writer: files.enter_context(
                open_archive(os.path.join(folder, index.part(writer)))
            )
            for writer in set(self._writers.values())
        }

    def are_whole(self) -> bool:
        """Whether all checksums are correct."""
        return all(archive.is_whole() for archive in self._archives.values())

    def __iter__(self) -> Iterator[str]:
        yield from self._writers
        yield resized.RANKS

    def __len__(self) -> int:
        return len(self._writers) + 1

    def __getitem__(self, key: str) -> Entry:
        if key == resized.RANKS:
            return entry_of(numpy.array(self._ranks))
        return self._archives[self._writers[key]].entry(key)
