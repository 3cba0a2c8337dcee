"""Ranks that act as if each of them were alone on its node."""

import functools

import numpy as np

from renga.distributed.compression import CompressionHook, Compressor
from tests.parallel.data.training_steps import make


def on_nodes(comm):
    """``comm`` if it has several nodes, else a group in which each rank is one."""
    if comm.inter_size > 1:
        return comm
    group = comm.split(0, comm.rank)
    group.inter_rank, group.inter_size = comm.rank, comm.size
    group.intra_rank, group.intra_size = 0, 1
    return group


def make_compressed(comm, compressor, kind=None, **options):
    """As make(), with compression for any number of nodes; one is none, otherwise."""
    kind = {} if kind is None else {"kind": kind}
    model, optimizer = make(comm, **kind, **options)
    optimizer.add_bucket_hook(CompressionHook(compressor, comm))
    return model, optimizer


class Identity(Compressor):
    """Sends gradients as they are, as a user's compressor might."""

    def encode(self, x, state):
        return [x.copy()]

    def decode(self, payload, out):
        np.copyto(out, payload[0])


@functools.cache
def gradient(seed, shape=(40, 30)):
    """A gradient whose elements differ by orders of magnitude."""
    random = np.random.RandomState(seed)
    return (random.normal(size=shape) ** 3).astype("float32")
