"""Attention of sharded tokens: keys and values travel round a ring of ranks.

Tokens are dealt out in turn: rank r of n has tokens r, n + r, 2 n + r, … So each rank
has as many earlier tokens as the others, and a causal mask halves every rank's work:
query i of rank r reads key j of rank s where j < i, or j = i and s ≤ r.

Source: Liu et al., Ring attention with blockwise transformers, 2023; Brandon et al.,
Striped attention, 2023.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from renga import _core
from renga import functions as F
from renga.communicators import settings
from renga.configuration import config
from renga.function_node import FunctionNode, grad
from renga.functions.loss.scores import in_full
from renga.functions.noise.seed import draw_seed, enable_random_streams
from renga.links.parallel.sharding.placement import REPLICATE_SUMMED, Shard
from renga.links.parallel.sharding.redistribute import Redistribution, all_gather_size
from renga.links.parallel.sharding.shard_ranges import shard_ranges, sizes_of
from renga.utils.type_check import InvalidType
from renga.variable import Variable, as_array

if TYPE_CHECKING:
    from renga.communicators import Communicator

_KEYS, _GRADIENTS = 0x4B56, 0x474B  # tags of messages
_LEAST = -1e30  # finite: the difference of two infinities is NaN


def ring_attention(
    comm: Communicator,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Variable:
    """``F.scaled_dot_product_attention`` of tokens that are dealt out to the ranks.

    Every rank calls it. While a rank attends to one block of keys and values, the next
    one arrives. Gradients of second order gather the keys and values of all ranks, and
    are not known with dropout.

    Shapes:
        query: (N, H, L, E) of this rank's tokens
        key: (N, H, S, E) of this rank's
        value: (N, H, S, V)
        attn_mask: any that broadcasts to (N, H, L, S) of all tokens; without gradient
        y: (N, H, L, V) of this rank's tokens

    Raises:
        InvalidType: shapes or dtypes do not fit, or tokens are not dealt out in turn.
        ValueError: ``dropout_p`` is not in [0, 1), or the mask requires a gradient.
    """
    query, key, value = (in_full(x) for x in (query, key, value))
    if isinstance(attn_mask, Variable) and attn_mask.requires_grad:
        raise ValueError("ring_attention: expected a mask that requires no gradient")
    for what, x in (("query", query), ("key", key)):
        if x.ndim != 4:
            raise InvalidType(
                f"ring_attention: expected {what} of 4 axes, got {x.shape}"
            )
    sizes = [all_gather_size(x, comm, 2) for x in (query, key)]
    for own in sizes:
        if own != sizes_of(shard_ranges(sum(own), comm.size)):
            raise InvalidType(
                "ring_attention: expected tokens that are dealt out to the ranks in "
                f"turn, got {own} of them"
            )
    scale = max(query.shape[3], 1) ** -0.5 if scale is None else float(scale)
    dropout_p = dropout_p if config.train else 0.0
    seeds = [draw_seed(query) for _ in range(comm.size if dropout_p else 0)]
    mask = None if attn_mask is None else _of_four_axes(as_array(attn_mask))
    node = RingAttention(comm, sizes[1], mask, dropout_p, is_causal, scale, seeds)
    return node.apply((query, key, value))[0]


class RingAttention(FunctionNode):
    """The attention of this rank's queries to the keys of all ranks.

    Args:
        sizes: how many keys each rank has.
        mask: of all tokens; None for no mask.
        seeds: of the dropout, by the rank of the keys.
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
        # Random numbers drawn for shards differ between ranks.
        self.random_stream = comm.rank + 1
        enable_random_streams()

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        q, k, v = inputs
        self.retain_inputs((0, 1, 2))
        # This rank's keys come first.
        for source, block in self._travelling(numpy.concatenate([k, v], 3)):
            first, found, found_log_sums = self._block(source, q, block)
            if source == self.comm.rank:
                y, log_sums = found, found_log_sums
            else:
                own = y[:, :, first:], log_sums[:, :, first:]
                _merge(*own, found, found_log_sums)
        self.log_sums = log_sums
        self.y = y.astype(q.dtype, copy=False)
        return (self.y,)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        q, k, v = self.get_retained_inputs()
        if _core.backprop_enabled():
            y = self._composed(q, k, v)
            targets = [(q, k, v)[i] for i in target_input_indexes]
            return tuple(grad([y], targets, grad_outputs, enable_double_backprop=True))
        gxs = self._gradients(q.array, k.array, v.array, grad_outputs[0].array)
        return tuple(Variable(gxs[i]) for i in target_input_indexes)

    def _gradients(self, q: Any, k: Any, v: Any, gy: Any) -> list[numpy.ndarray]:
        """Of q, k and v. The sums for a block of keys follow it round the ring."""
        comm, depth = self.comm, q.shape[3]
        before, after = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
        keys, dtype = numpy.concatenate([k, v], 3), self.log_sums.dtype
        leaving = []
        for source, block in self._travelling(keys):
            if source != comm.rank:
                sums = numpy.empty(block.shape, dtype)
                arriving = comm.recv(before, _GRADIENTS, out=sums, wait=False)
            first, found, gk, gv = self._block_gradients(source, q, block, gy)
            if source == comm.rank:
                gq, sums = found, numpy.concatenate([gk, gv], 3, dtype=dtype)
            else:
                gq[:, :, first:] += found
                arriving.wait(settings.timeout())
                sums[..., :depth] += gk
                sums[..., depth:] += gv
            if comm.size > 1:
                leaving.append(comm.send(sums, after, _GRADIENTS, wait=False))
        if comm.size > 1:
            sums = comm.recv(before, _GRADIENTS, out=numpy.empty(keys.shape, dtype))
        for work in leaving:
            work.wait(settings.timeout())
        gxs = gq, sums[..., :depth], sums[..., depth:]
        return [g.astype(q.dtype, copy=False) for g in gxs]

    def _block(self, source: int, q: Any, block: Any) -> tuple[int, Any, Any]:
        """The first query that reads keys of a rank; what it and later ones read.

        That are the results and the logarithms of the softmax's denominators.
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
        """The same query, and what the keys of a rank contribute to gradients."""
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

    def _travelling(self, own: numpy.ndarray) -> Iterator[tuple[int, numpy.ndarray]]:
        """Each rank with its array of (N, H, S, …), from this rank backwards.

        The next array arrives while one is used.
        """
        comm = self.comm
        before, after = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
        for step in range(comm.size):
            source = (comm.rank - step) % comm.size
            if step + 1 == comm.size:
                yield source, own
                return
            n, heads, _, size = own.shape
            shape = n, heads, self.sizes[(source - 1) % comm.size], size
            following = numpy.empty(shape, own.dtype)
            arriving = comm.recv(before, _KEYS, out=following, wait=False)
            leaving = comm.send(own, after, _KEYS, wait=False)
            yield source, own
            arriving.wait(settings.timeout())
            leaving.wait(settings.timeout())
            own = following

    def _attention(self, source: int, q: Any, block: Any) -> tuple[int, Any]:
        """The attention to the keys of a rank, and the first query that reads any.

        None where there are no queries or no keys.
        """
        comm, depth = self.comm, q.shape[3]
        # Query i reads keys before i of later ranks, and key i of others, too.
        first = 1 if self.is_causal and source > comm.rank else 0
        if q.shape[2] <= first or block.shape[2] == 0:
            return first, None
        mask = None
        if self.mask is not None:
            mask = _dealt(
                _dealt(self.mask, 2, comm.size, comm.rank), 3, comm.size, source
            )
            mask = mask[:, :, first:] if mask.shape[2] > 1 else mask
        seed = self.seeds[source] if self.seeds else 0
        options = mask, self.scale, self.is_causal, self.dropout_p, seed
        k, v = block[..., :depth], block[..., depth:]
        return first, _core.attention.Attention(q[:, :, first:], k, v, *options)

    def _composed(self, q: Variable, k: Variable, v: Variable) -> Variable:
        """The same by functions that can be differentiated any number of times."""
        if self.dropout_p:
            raise RuntimeError(
                "ring_attention: expected no dropout for gradients of second order"
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
    """Adds the result for further keys to ``y``, in place; ``other`` is used up."""
    total = numpy.maximum(numpy.logaddexp(log_sums, other_log_sums), _LEAST)
    y *= numpy.exp(log_sums - total)[..., None]
    other *= numpy.exp(other_log_sums - total)[..., None]
    y += other
    log_sums[...] = numpy.where(total == _LEAST, -numpy.inf, total)


def _of_four_axes(mask: numpy.ndarray) -> numpy.ndarray:
    return mask.reshape((1,) * (4 - mask.ndim) + mask.shape)


def _dealt(mask: numpy.ndarray, axis: int, ranks: int, rank: int) -> numpy.ndarray:
    """A rank's elements of an axis, or the only one."""
    if mask.shape[axis] == 1:
        return mask
    return mask[(slice(None),) * axis + (slice(rank, None, ranks),)]
