"""Sharing a data set out over ranks."""

from __future__ import annotations

import hashlib
import pickle
from typing import Any, NamedTuple

import numpy

from renga.distributed.datasets.narrow import narrow
from renga.distributed.datasets.shard import Shard


class DataSizeError(RuntimeError):
    """Data too large to send; ChainerMN raises it, here sizes have no limit."""


class _Part(NamedTuple):
    begin: int
    end: int
    repeats: int  # how many at its end the next part holds too


def _part(n: int, rank: int, size: int, equal: bool) -> _Part:
    if not equal:
        share, more = divmod(n, size)
        begin = share * rank + min(rank, more)
        return _Part(begin, begin + share + (rank < more), 0)
    length = -(-n // size)
    begin, next_begin = n * rank // size, n * (rank + 1) // size
    return _Part(begin, begin + length, length - (next_begin - begin))


def scatter_index(
    n_total_samples: int | None,
    comm: Any,
    root: int = 0,
    *,
    force_equal_length: bool = True,
) -> tuple[int, int]:
    """Where this rank's part of so many samples begins and ends.

    Args:
        n_total_samples: matters on the root only.
        force_equal_length: parts of one length, which may overlap; otherwise parts
            without overlap, of which the first ones may have one sample more.
    """
    n = comm.bcast_obj(n_total_samples, root=root)
    part = _part(n, comm.rank, comm.size, force_equal_length)
    return part.begin, part.end


def scatter_dataset(
    dataset: Any,
    comm: Any,
    root: int = 0,
    shuffle: bool = False,
    seed: int | None = None,
    max_buf_len: int = 256 * 1024 * 1024,
    *,
    force_equal_length: bool = True,
) -> Shard:
    """This rank's part of the root's data set.

    Where every rank has the same data set, nothing but its order is sent. Otherwise
    each rank is sent its own examples only, if the data set is made of arrays, lists
    and the classes of ``renga.datasets``; another kind is sent as a whole.

    Args:
        dataset: the root's counts; the other ranks may give None.
        comm: a communicator, or one of mpi4py.
        shuffle: whether the root orders the examples by chance first.
        seed: of that order; the same for the same seed.
        max_buf_len: has no effect: any size is sent in pieces.
        force_equal_length: parts of one length, which may overlap.

    Raises:
        ValueError: there is no such root.
    """
    if not hasattr(comm, "bcast_obj"):
        from renga.communicators import create_communicator

        comm = create_communicator("mpi", mpi_comm=comm)
    if not 0 <= root < comm.size:
        raise ValueError(
            f"scatter_dataset: expected a root in [0, {comm.size}), got {root}"
        )
    if _all_have_it(dataset, comm, root):
        order = None
        if comm.rank == root:
            order = _order(len(dataset), shuffle, seed)
        order, equal = comm.bcast_obj((order, force_equal_length), root=root)
        part = _part(len(dataset), comm.rank, comm.size, equal)
        return Shard(dataset, part.begin, part.end, order, part.repeats)
    if comm.rank != root:
        return comm.recv_obj(root, 0)
    n = len(dataset)
    order = _order(n, shuffle, seed)
    mine = None
    for rank in range(comm.size):
        shard = _shard(dataset, order, _part(n, rank, comm.size, force_equal_length))
        if rank == root:
            mine = shard
        else:
            comm.send_obj(shard, rank, 0)
    assert mine is not None
    return mine


def _order(n: int, shuffle: bool, seed: int | None) -> numpy.ndarray | None:
    return numpy.random.RandomState(seed).permutation(n) if shuffle else None


def _all_have_it(dataset: Any, comm: Any, root: int) -> bool:
    """Whether every rank's data set is the root's, down to the last bit."""
    nothing = dataset is None or (comm.rank != root and len(dataset) == 0)
    if any(comm.allgather_obj(nothing)):
        return False
    digests = comm.allgather_obj(_digest(dataset))
    return digests[root] is not None and len(set(digests)) == 1


def _digest(dataset: Any) -> bytes | None:
    """Of what would be sent; None for what cannot be."""
    digest = hashlib.blake2b(digest_size=16)

    def add(buffer: pickle.PickleBuffer) -> None:
        digest.update(buffer.raw())

    try:
        digest.update(pickle.dumps(dataset, 5, buffer_callback=add))
    except Exception:
        return None
    return digest.digest()


def _shard(dataset: Any, order: numpy.ndarray | None, part: _Part) -> Shard:
    indices = numpy.arange(part.begin, part.end)
    narrowed = narrow(dataset, indices if order is None else order[indices])
    if narrowed is None:
        return Shard(dataset, part.begin, part.end, order, part.repeats)
    return Shard(narrowed, 0, len(narrowed), None, part.repeats)
