"""What the ranks of a pipeline tell each other before a call that all have to make."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    from renga.communicators import Communicator


def agree(comm: Communicator, call: str, text: str = "", flags: int = 0) -> list[int]:
    """The flags of all ranks, which have to make the same call; it sends 16 bytes.

    Args:
        comm: the ranks of a pipeline.
        call: the method that is called.
        text: of its arguments, what has to be the same on all ranks.
        flags: of this rank.

    Raises:
        RuntimeError: on every rank, if the calls differ.
    """
    if comm.size == 1:
        return [flags]
    digest = hashlib.blake2b(f"{call} {text}".encode(), digest_size=8).digest()
    own = numpy.array([numpy.frombuffer(digest, numpy.int64)[0], flags])
    digests, all_flags = comm.all_gather(own).T
    if (digests == digests[0]).all():  # on all ranks, or on none
        return [int(each) for each in all_flags]
    calls = comm.allgather_obj((call, text))
    names = [each for each, _ in calls]
    if len(set(names)) == 1:
        names = [f"{each} with {described}" for each, described in calls]
    raise RuntimeError(_difference(names))


def _difference(calls: Sequence[str]) -> str:
    rank = next(i for i, each in enumerate(calls) if each != calls[0])
    return (
        f"Pipeline: expected every rank to call the same, got {calls[0]} on rank 0 and "
        f"{calls[rank]} on rank {rank}"
    )
