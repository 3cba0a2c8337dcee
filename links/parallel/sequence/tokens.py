"""Tokens that change between replicated and sharded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from renga.functions import permutate
from renga.links.parallel.sharding.placement import REPLICATE, Shard
from renga.links.parallel.sharding.redistribute import Redistribution, all_gather_size
from renga.links.parallel.sharding.shard_ranges import shard_ranges, sizes_of
from renga.utils.type_check import InvalidType
from renga.variable import Variable, as_variable

if TYPE_CHECKING:
    from renga.communicators import Communicator

# Of sequences (N, L, …) whose tokens were dealt out in turn.
TOKENS = Shard(1)


def scatter_sequence(comm: Communicator, x: Any) -> Any:
    """This rank's tokens of sequences that every rank has.

    Rank r of n gets tokens r, n + r, 2 n + r, … of axis 1. The gradient is that of the
    whole sequences, on every rank.

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
    return scatter.apply(permutate(x, _dealt(x.shape[1], comm.size), 1))


def gather_sequence(comm: Communicator, x: Any) -> Variable:
    """The whole sequences, on every rank, of which ``x`` are this rank's tokens.

    All ranks have to compute the same from the result: the gradient of ``x`` is this
    rank's shard of the gradient of the whole.

    Shapes:
        x: (N, tokens of this rank, …), as ``scatter_sequence`` shards them
        result: (N, L, …)

    Raises:
        InvalidType: ``x`` has no axis 1, or the ranks have other numbers of tokens.
    """
    x = as_variable(x)
    if x.ndim < 2:
        raise InvalidType(f"gather_sequence: expected (N, L, …), got {x.shape}")
    if comm.size == 1:
        return x
    sizes = all_gather_size(x, comm, 1)
    if sizes != sizes_of(shard_ranges(sum(sizes), comm.size)):
        raise InvalidType(
            f"gather_sequence: expected tokens that are dealt out in turn, got {sizes}"
        )
    y = Redistribution(comm, TOKENS, REPLICATE, sizes).apply(x)
    return permutate(y, _dealt(sum(sizes), comm.size), 1, inv=True)


def _dealt(length: int, ranks: int) -> numpy.ndarray:
    """The tokens of rank 0, those of rank 1, and so on."""
    return numpy.concatenate([numpy.arange(r, length, ranks) for r in range(ranks)])
