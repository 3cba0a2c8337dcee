"""How gradients are grouped into buckets, and the memory they are flattened into."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable

import numpy

from renga.communicators import Communicator
from renga.communicators.work import Work
from renga.core.parameter import Parameter
from renga.core.types import Array

# Large enough to amortize the latency of messages, small enough that the first bucket
# is sent early in the backward pass.
BUCKET_BYTES = 4 << 20
_LEAST_BYTES = 1 << 18
# A hook between nodes gets smaller buckets: what it sends may take long, and should
# begin early.
_HOOKED_BYTES = 1 << 20
# To start a bucket takes so long besides the latency of messages, and both together
# should take no more than this share of the time of its bytes.
_LAUNCH_SECONDS = 1e-4
_LATENCY_SHARE = 0.05
_CACHE_LINE_BYTES = 64


@dataclass
class Bucket:
    """Gradients of one dtype that are reduced together, for a bucket hook.

    Attributes:
        names: of the parameters, as in ``namedparams``.
        gradients: those of this rank, weighted by its samples: their mean over the
            ranks is the gradient. They may be overwritten.
        loss_scale: what they are multiplied by; None for nothing.
    """

    names: list[str]
    gradients: list[Array]
    loss_scale: float | None = None

    def means_of(self, result: Sequence[Array]) -> list[Array]:
        """The result of a hook's Work.

        Raises:
            ValueError: if it is not a list of arrays like ``gradients``.
        """
        got: Any = type(result).__name__
        if isinstance(result, (list, tuple)):
            got = [getattr(x, "shape", None) for x in result]
        expected = [x.shape for x in self.gradients]
        if got != expected:
            raise ValueError(
                "bucket hook: expected a Work whose result is a list of arrays of "
                f"{expected}, got {got}"
            )
        return list(result)


BucketHook = Callable[[Bucket], Work]


def bucket_bytes(comm: Communicator) -> int:
    """How large the buckets of a communicator should be; every rank calls it.

    Between nodes the network is measured: the slower it is, the smaller a bucket may
    be, and the earlier the first one is sent. The size changes no bit of a mean.
    """
    if comm.inter_size == 1:
        return BUCKET_BYTES
    return size_for(comm.size, *comm.network())


def hooked_bucket_bytes(comm: Communicator) -> int:
    """How large the buckets for a hook are: it sees them, so nothing is measured."""
    return BUCKET_BYTES if comm.inter_size == 1 else min(BUCKET_BYTES, _HOOKED_BYTES)


def size_for(ranks: int, latency: float, seconds_per_byte: float) -> int:
    """The bytes of a bucket on a network.

    An all-reduce takes its latency once for each halving of the ranks, and sends each
    byte twice.
    """
    overhead = _LAUNCH_SECONDS + latency * 2 * math.log2(ranks)
    share = _LATENCY_SHARE * 2 * seconds_per_byte
    # A measurement of messages of two sizes may show no difference.
    enough = overhead / share if share > 0 else BUCKET_BYTES
    return int(min(BUCKET_BYTES, max(_LEAST_BYTES, enough)))


def assign_buckets(
    params: Sequence[Parameter], order: Sequence[int], bucket_bytes: int
) -> list[list[int]]:
    """Indices of parameters, bucket by bucket, in an order.

    The gradients of one bucket have one dtype and, unless there is only one, no more
    than ``bucket_bytes`` in all.
    """
    buckets: list[list[int]] = []
    free_bytes, dtype = 0, None
    for i in order:
        param = params[i]
        size = param.size * param.dtype.itemsize
        if not buckets or param.dtype != dtype or size > free_bytes:
            buckets.append([])
            free_bytes, dtype = bucket_bytes, param.dtype
        buckets[-1].append(i)
        free_bytes -= size
    return buckets


def flattened_bucket(
    comm: Communicator, arrays: Sequence[numpy.ndarray]
) -> tuple[numpy.ndarray, list[numpy.ndarray]]:
    """One array in memory that the ranks of a node share, and views like ``arrays``.

    Views start at cache lines, where kernels write fastest. Every rank calls it.
    """
    line = _CACHE_LINE_BYTES // arrays[0].itemsize
    padded_sizes = [-(-x.size // line) * line for x in arrays]
    flat: Any = comm.window((sum(padded_sizes),), arrays[0].dtype)
    flat[:] = 0
    views = numpy.split(flat, numpy.cumsum(padded_sizes)[:-1])
    return flat, [view[: x.size].reshape(x.shape) for x, view in zip(arrays, views)]
