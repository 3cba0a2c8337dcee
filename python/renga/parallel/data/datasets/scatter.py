"""Scattering a data set over ranks."""

from __future__ import annotations

import hashlib
import pickle
from typing import NamedTuple

import numpy

from renga.communicators import Communicator, create_communicator
from renga.core.types import Dataset
from renga.parallel.data.datasets.narrow import narrow
from renga.parallel.data.datasets.shard import DatasetShard


class DataSizeError(RuntimeError):
    """Data too large to send; ChainerMN raises it, here sizes have no limit."""


class _Range(NamedTuple):
    begin: int
    end: int
    repeats: int  # how many examples at its end the next range has too


def _range_of(n: int, rank: int, size: int, equal: bool) -> _Range:
    if not equal:
        least, more = divmod(n, size)
        begin = least * rank + min(rank, more)
        return _Range(begin, begin + least + (rank < more), 0)
    length = -(-n // size)
    begin, next_begin = n * rank // size, n * (rank + 1) // size
    return _Range(begin, begin + length, length - (next_begin - begin))


def scatter_index(
    n_total_samples: int | None,
    comm: Communicator,
    root: int = 0,
    *,
    force_equal_length: bool = True,
) -> tuple[int, int]:
    """The begin and the end of this rank's range of samples.

    Args:
        n_total_samples: used on the root only.
        force_equal_length: whether all ranges have one length, and may overlap;
            otherwise they do not, and the first ones may have one sample more.
    """
    n = comm.bcast_obj(n_total_samples, root=root)
    own = _range_of(n, comm.rank, comm.size, force_equal_length)
    return own.begin, own.end


def scatter_dataset(
    dataset: Dataset,
    comm: Communicator,
    root: int = 0,
    shuffle: bool = False,
    seed: int | None = None,
    max_buf_len: int = 256 * 1024 * 1024,
    *,
    force_equal_length: bool = True,
) -> DatasetShard:
    """This rank's shard of the root's data set.

    If every rank has the same data set, only its order is sent. Otherwise each rank is
    sent its own examples only, if the data set is made of arrays, lists and the classes
    of ``renga.datasets``; others are sent whole.

    Args:
        dataset: used on the root; the other ranks may give None.
        comm: a communicator, or one of mpi4py.
        shuffle: whether the root shuffles the examples first.
        seed: of the shuffle.
        max_buf_len: has no effect: any size is sent in pieces.
        force_equal_length: whether all shards have one length, and may overlap.

    Raises:
        ValueError: there is no such root.
        TypeError: the root's data set has no length.
    """
    if not hasattr(comm, "bcast_obj"):
        comm = create_communicator("mpi", mpi_comm=comm)
    if not 0 <= root < comm.size:
        raise ValueError(
            f"scatter_dataset: expected a root in [0, {comm.size}), got {root}"
        )
    if comm.rank == root and not hasattr(dataset, "__len__"):
        raise TypeError(
            "scatter_dataset: expected a data set with a length, got "
            f"{type(dataset).__name__}"
        )
    if _is_replicated(dataset, comm, root):
        order = None
        if comm.rank == root:
            order = _order(len(dataset), shuffle, seed)
        order, equal = comm.bcast_obj((order, force_equal_length), root=root)
        own = _range_of(len(dataset), comm.rank, comm.size, equal)
        return DatasetShard(dataset, own.begin, own.end, order, own.repeats)
    if comm.rank != root:
        own_shard: DatasetShard = comm.recv_obj(root, 0)
        return own_shard
    order = _order(len(dataset), shuffle, seed)
    return _send_shards(dataset, comm, order, force_equal_length)


def _send_shards(
    dataset: Dataset, comm: Communicator, order: numpy.ndarray | None, equal: bool
) -> DatasetShard:
    """Sends each other rank its shard, and returns this rank's."""
    for rank in range(comm.size):
        samples = _range_of(len(dataset), rank, comm.size, equal)
        shard = _shard(dataset, order, samples)
        if rank == comm.rank:
            own_shard = shard
        else:
            comm.send_obj(shard, rank, 0)
    return own_shard


def _order(n: int, shuffle: bool, seed: int | None) -> numpy.ndarray | None:
    return numpy.random.RandomState(seed).permutation(n) if shuffle else None


def _is_replicated(dataset: Dataset, comm: Communicator, root: int) -> bool:
    """Whether every rank's data set has the same bits as the root's."""
    is_missing = dataset is None or (comm.rank != root and len(dataset) == 0)
    if any(comm.allgather_obj(is_missing)):
        return False
    digests = comm.allgather_obj(_digest(dataset))
    return digests[root] is not None and len(set(digests)) == 1


def _digest(dataset: Dataset) -> bytes | None:
    """Of a data set as it would be sent; None if it cannot be pickled."""
    digest = hashlib.blake2b(digest_size=16)

    def add(buffer: pickle.PickleBuffer) -> None:
        digest.update(buffer.raw())

    try:
        digest.update(pickle.dumps(dataset, 5, buffer_callback=add))
    except Exception:
        return None
    return digest.digest()


def _shard(dataset: Dataset, order: numpy.ndarray | None, own: _Range) -> DatasetShard:
    indices = numpy.arange(own.begin, own.end)
    narrowed = narrow(dataset, indices if order is None else order[indices])
    if narrowed is None:
        return DatasetShard(dataset, own.begin, own.end, order, own.repeats)
    return DatasetShard(narrowed, 0, len(narrowed), None, own.repeats)
