"""Sharding of tokens over ranks, and gathering of them."""

from __future__ import annotations

from typing import TypeVar

import numpy

from renga.communicators import Communicator
from renga.core.variable import Variable, as_variable
from renga.functions import permutate
from renga.parallel.placement import REPLICATE, Shard
from renga.parallel.placement.shard_ranges import shard_ranges, sizes_of
from renga.parallel.redistribute import Redistribution, all_gather_size
from renga.utils.type_check import InvalidType

# The placement of sequences (N, L, …) whose tokens are distributed round-robin.
TOKENS = Shard(1)
_Tokens = TypeVar("_Tokens", Variable, numpy.ndarray)


def scatter_sequence(comm: Communicator, x: _Tokens) -> _Tokens:
    """This rank's tokens of sequences that every rank has.

    Rank r of n gets tokens r, n + r, 2 n + r, … of axis 1. In the backward pass, every
    rank gets the gradient of the whole sequences.

    Shapes:
        x: (N, L, …), an array or a Variable, the same on every rank
        result: (N, tokens of this rank, …), of the same kind

    Raises:
        InvalidType: ``x`` has no axis 1.
    """
    if x.ndim < 2:
        raise InvalidType(f"scatter_sequence: expected (N, L, …), got {x.shape}")
    if comm.size == 1:
        return x
    if not isinstance(x, Variable):
        return numpy.ascontiguousarray(x[:, comm.rank :: comm.size])
    sizes = sizes_of(shard_ranges(x.shape[1], comm.size))
    scatter = Redistribution(comm, REPLICATE, TOKENS, target_sizes=sizes)
    return scatter.apply(permutate(x, _round_robin(x.shape[1], comm.size), 1))


def gather_sequence(comm: Communicator, x: Variable | numpy.ndarray) -> Variable:
    """The whole sequences, on every rank, from the tokens ``x`` of each rank.

    All ranks have to compute the same from the result, as the gradient of ``x`` is this
    rank's shard of this rank's gradient of the whole.

    Shapes:
        x: (N, tokens of this rank, …), as ``scatter_sequence`` shards them
        result: (N, L, …)

    Raises:
        InvalidType: ``x`` has no axis 1, or the numbers of tokens are not those of
            ``scatter_sequence``.
    """
    x = as_variable(x)
    if x.ndim < 2:
        raise InvalidType(f"gather_sequence: expected (N, L, …), got {x.shape}")
    if comm.size == 1:
        return x
    sizes = all_gather_size(x, comm, 1)
    if sizes != sizes_of(shard_ranges(sum(sizes), comm.size)):
        raise InvalidType(
            f"gather_sequence: expected tokens distributed round-robin, got {sizes}"
        )
    y = Redistribution(comm, TOKENS, REPLICATE, sizes).apply(x)
    return permutate(y, _round_robin(sum(sizes), comm.size), 1, inv=True)


def _round_robin(length: int, ranks: int) -> numpy.ndarray:
    """The positions of rank 0's tokens, then those of rank 1, and so on."""
    return numpy.concatenate([numpy.arange(r, length, ranks) for r in range(ranks)])
