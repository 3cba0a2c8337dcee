"""Ring attention: blocks of keys and values are passed round a ring of ranks.

Tokens are distributed round-robin: rank r of n has tokens r, n + r, 2 n + r, … So each
rank has as many early tokens as the others, and a causal mask halves every rank's work:
query i of rank r attends to key j of rank s if j < i, or if j = i and s ≤ r.

Source: Liu et al., Ring attention with blockwise transformers, 2023; Brandon et al.,
Striped attention, 2023.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from renga import _core, functions as F
from renga.communicators import Communicator, settings
from renga.core.configuration import config
from renga.core.function_node import FunctionNode
from renga.core.gradients import grad_of_shards
from renga.core.types import Array, ArrayLike, Grads, Indexes, Variables
from renga.core.variable import Variable, as_array
from renga.functions.array.cast import in_nominal_dtype
from renga.functions.noise.seed import draw_seed, give_stream
from renga.parallel.placement import REPLICATE_SUMMED, Shard
from renga.parallel.placement.shard_ranges import shard_ranges, sizes_of
from renga.parallel.redistribute import Redistribution, all_gather_size
from renga.utils.type_check import InvalidType

_KEYS, _GRADIENTS = 0x4B56, 0x474B  # tags of messages
_LEAST = -1e30  # finite: the difference of two infinities is NaN


def ring_attention(
    comm: Communicator,
    query: ArrayLike,
    key: ArrayLike,
    value: Variable,
    attn_mask: ArrayLike | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Variable:
    """``F.scaled_dot_product_attention`` of tokens that are sharded over the ranks.

    Every rank calls it. While a rank attends to one block of keys and values, it
    receives the next one. Second-order gradients gather the keys and values of all
    ranks; they do not support dropout.

    Shapes:
        query: (N, H, L, E), this rank's tokens
        key: (N, H, S, E), this rank's tokens
        value: (N, H, S, V)
        attn_mask: broadcasts to (N, H, L, S) of all tokens; requires no gradient
        y: (N, H, L, V) of this rank's tokens

    Raises:
        InvalidType: shapes or dtypes do not fit, or tokens are not distributed
            round-robin.
        ValueError: ``dropout_p`` is not in [0, 1), or the mask requires a gradient.
    """
    query, key, value = (in_nominal_dtype(x) for x in (query, key, value))
    if isinstance(attn_mask, Variable) and attn_mask.requires_grad:
        raise ValueError("ring_attention: expected a mask that requires no gradient")
    for what, x in (("query", query), ("key", key)):
        if x.ndim != 4:
            raise InvalidType(
                f"ring_attention: expected {what} of 4 axes, got {x.shape}"
            )
    sizes = [all_gather_size(x, comm, 2) for x in (query, key)]
    for counts in sizes:
        if counts != sizes_of(shard_ranges(sum(counts), comm.size)):
            raise InvalidType(
                "ring_attention: expected tokens distributed round-robin over the "
                f"ranks, got {counts} of them"
            )
    scale = max(query.shape[3], 1) ** -0.5 if scale is None else float(scale)
    dropout_p = dropout_p if config.train else 0.0
    seeds = [draw_seed(query) for _ in range(comm.size if dropout_p else 0)]
    mask = None if attn_mask is None else _with_four_axes(as_array(attn_mask))
    node = RingAttention(comm, sizes[1], mask, dropout_p, is_causal, scale, seeds)
    return node.apply((query, key, value))[0]


class RingAttention(FunctionNode):
    """The attention of this rank's queries to the keys of all ranks.

    Args:
        sizes: the number of keys of each rank.
        mask: for all tokens, with four axes; or None.
        seeds: for the dropout of each rank's keys; empty without dropout.
    """

    def __init__(
        self,
        comm: Communicator,
        sizes: Sequence[int],
        mask: numpy.ndarray | None,
        dropout_p: float,
        is_causal: bool,
        scale: float,
        seeds: Sequence[int],
    ) -> None:
        self.comm, self.sizes, self.mask = comm, sizes, mask
        self.dropout_p, self.is_causal, self.scale = dropout_p, is_causal, scale
        self.seeds = seeds
        self.previous_rank = (comm.rank - 1) % comm.size
        self.next_rank = (comm.rank + 1) % comm.size
        give_stream(self, comm)

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        q, k, v = inputs
        self.retain_inputs((0, 1, 2))
        # The first block has this rank's own keys.
        for source, block in self._pass_round(numpy.concatenate([k, v], 3)):
            first, block_y, block_log_sums = self._attend(source, q, block)
            if source == self.comm.rank:
                y, log_sums = block_y, block_log_sums
            else:
                so_far = y[:, :, first:], log_sums[:, :, first:]
                _merge(*so_far, block_y, block_log_sums)
        self.log_sums = log_sums
        self.y = y.astype(q.dtype, copy=False)
        return (self.y,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Variables) -> Grads:
        q, k, v = self.get_retained_inputs()
        if _core.backprop_enabled():
            y = self._composed(q, k, v)
            targets = [(q, k, v)[i] for i in target_input_indexes]
            return tuple(
                grad_of_shards([y], targets, grad_outputs, enable_double_backprop=True)
            )
        gxs = self._gradients(q.array, k.array, v.array, grad_outputs[0].array)
        return tuple(Variable(gxs[i]) for i in target_input_indexes)

    def _gradients(self, q: Any, k: Any, v: Any, gy: Any) -> list[numpy.ndarray]:
        """Of q, k and v. The gradients of a block follow it round the ring."""
        comm, depth = self.comm, q.shape[3]
        own_block, dtype = numpy.concatenate([k, v], 3), self.log_sums.dtype
        sends = []
        for source, block in self._pass_round(own_block):
            if source != comm.rank:
                sums = numpy.empty(block.shape, dtype)
                receive = comm.recv(
                    self.previous_rank, _GRADIENTS, out=sums, wait=False
                )
            first, block_gq, gk, gv = self._block_gradients(source, q, block, gy)
            if source == comm.rank:
                gq, sums = block_gq, numpy.concatenate([gk, gv], 3, dtype=dtype)
            else:
                gq[:, :, first:] += block_gq
                receive.wait(settings.timeout())
                sums[..., :depth] += gk
                sums[..., depth:] += gv
            if comm.size > 1:
                sends.append(comm.send(sums, self.next_rank, _GRADIENTS, wait=False))
        if comm.size > 1:
            sums = numpy.empty(own_block.shape, dtype)
            comm.recv(self.previous_rank, _GRADIENTS, out=sums)
        for work in sends:
            work.wait(settings.timeout())
        gxs = gq, sums[..., :depth], sums[..., depth:]
        return [g.astype(q.dtype, copy=False) for g in gxs]

    def _attend(self, source: int, q: Any, block: Any) -> tuple[int, Any, Any]:
        """Attends to the block of rank ``source``.

        Returns the first query that attends to it and, from that query on, the outputs
        and the logarithms of the softmax's denominators.
        """
        first, attention = self._attention(source, q, block)
        dtype = numpy.promote_types(q.dtype, numpy.float32)
        if attention is None:
            shape = q[:, :, first:].shape[:3]
            width = block.shape[3] - q.shape[3]
            return (
                first,
                numpy.zeros((*shape, width), dtype),
                numpy.full(shape, -numpy.inf, dtype),
            )
        y, log_sums = _core.attention.attend_to_block(attention)
        return first, y.astype(dtype, copy=False), log_sums

    def _block_gradients(
        self, source: int, q: Any, block: Any, gy: Any
    ) -> tuple[int, Any, Any, Any]:
        """The first query of ``_attend``; the block's terms of gq, gk and gv."""
        first, attention = self._attention(source, q, block)
        depth, dtype = q.shape[3], self.log_sums.dtype
        if attention is None:
            sums = numpy.zeros(block.shape, dtype)
            gq = numpy.zeros(q[:, :, first:].shape, dtype)
            return first, gq, sums[..., :depth], sums[..., depth:]
        y, log_sums = self.y[:, :, first:], self.log_sums[:, :, first:]
        gq, gk, gv = _core.attention.block_gradients(
            attention, y, log_sums, gy[:, :, first:]
        )
        return first, gq.astype(dtype, copy=False), gk, gv

    def _pass_round(self, block: numpy.ndarray) -> Iterator[tuple[int, numpy.ndarray]]:
        """Yields each rank with its block of (N, H, S, …), from this rank backwards.

        The next block is received while the caller uses one.
        """
        comm = self.comm
        for step in range(comm.size):
            source = (comm.rank - step) % comm.size
            if step + 1 == comm.size:
                yield source, block
                return
            n, heads, _, size = block.shape
            shape = n, heads, self.sizes[(source - 1) % comm.size], size
            next_block = numpy.empty(shape, block.dtype)
            receive = comm.recv(self.previous_rank, _KEYS, out=next_block, wait=False)
            send = comm.send(block, self.next_rank, _KEYS, wait=False)
            yield source, block
            receive.wait(settings.timeout())
            send.wait(settings.timeout())
            block = next_block

    def _attention(self, source: int, q: Any, block: Any) -> tuple[int, Any]:
        """The first query that attends to keys of rank ``source``, and its attention.

        The attention is None if there are no queries or no keys.
        """
        comm, depth = self.comm, q.shape[3]
        # Query i attends to keys before i of later ranks, and also to key i of others.
        first = 1 if self.is_causal and source > comm.rank else 0
        if q.shape[2] <= first or block.shape[2] == 0:
            return first, None
        mask = None
        if self.mask is not None:
            mask = _tokens_of(self.mask, 2, comm.size, comm.rank)
            mask = _tokens_of(mask, 3, comm.size, source)
            mask = mask[:, :, first:] if mask.shape[2] > 1 else mask
        seed = self.seeds[source] if self.seeds else 0
        options = mask, self.scale, self.is_causal, self.dropout_p, seed
        k, v = block[..., :depth], block[..., depth:]
        return first, _core.attention.Attention(q[:, :, first:], k, v, *options)

    def _composed(self, q: Variable, k: Variable, v: Variable) -> Variable:
        """The same output from functions that can be differentiated repeatedly."""
        if self.dropout_p:
            raise RuntimeError(
                "ring_attention: expected no dropout for second-order gradients"
            )
        comm, sizes = self.comm, self.sizes
        gather = Redistribution(comm, Shard(2), REPLICATE_SUMMED, sizes)
        ranks = range(comm.size)
        # The positions of gathered keys, and of this rank's queries.
        keys = numpy.concatenate(
            [rank + comm.size * numpy.arange(sizes[rank]) for rank in ranks]
        )
        queries = comm.rank + comm.size * numpy.arange(q.shape[2])
        mask = self.mask
        if mask is not None:
            mask = mask[:, :, queries] if mask.shape[2] > 1 else mask
            mask = mask[..., keys] if mask.shape[3] > 1 else mask
        if self.is_causal:
            allowed = keys <= queries[:, None]
            if mask is None or mask.dtype == bool:
                mask = allowed if mask is None else mask & allowed
            else:
                mask = mask + numpy.where(allowed, 0, -numpy.inf).astype(mask.dtype)
        k, v = gather.apply(k), gather.apply(v)
        return F.scaled_dot_product_attention(q, k, v, mask, scale=self.scale)


def _merge(y: Any, log_sums: Any, other: Any, other_log_sums: Any) -> None:
    """Merges the output for other keys into ``y``, in place; overwrites ``other``."""
    total = numpy.maximum(numpy.logaddexp(log_sums, other_log_sums), _LEAST)
    y *= numpy.exp(log_sums - total)[..., None]
    other *= numpy.exp(other_log_sums - total)[..., None]
    y += other
    log_sums[...] = numpy.where(total == _LEAST, -numpy.inf, total)


def _with_four_axes(mask: numpy.ndarray) -> numpy.ndarray:
    return mask.reshape((1,) * (4 - mask.ndim) + mask.shape)


def _tokens_of(mask: numpy.ndarray, axis: int, ranks: int, rank: int) -> numpy.ndarray:
    """The elements of an axis that belong to a rank's tokens; one that broadcasts."""
    if mask.shape[axis] == 1:
        return mask
    return mask[(slice(None),) * axis + (slice(rank, None, ranks),)]
