"""Attention with several heads, and the keys and values of earlier positions."""

from __future__ import annotations

from typing import Any

import numpy

from renga.core import backend
from renga.core.link import Chain
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable, as_array, as_variable
from renga.functions import (
    linear,
    repeat,
    reshape,
    rotary_embedding,
    scaled_dot_product_attention,
    split_axis,
    transpose,
    where,
)
from renga.links.connection.linear import Linear
from renga.utils.extents import check_sizes


class KeyValueCache:
    """The keys and values that an attention has computed so far, for generation.

    They are arrays, without a graph: gradients do not pass. One cache belongs to one
    attention.
    """

    def __init__(self) -> None:
        self._buffers: list[Any] = []
        self.length = 0

    def append(self, key: ArrayLike, value: ArrayLike) -> tuple[Array, Array]:
        """Adds the next positions and returns those of all.

        Shapes:
            key, value: (N, H, L, D)
            return: twice (N, H, length, D)
        """
        news = [as_array(x) for x in (key, value)]
        begin, end = self.length, self.length + news[0].shape[2]
        if not self._buffers or end > self._buffers[0].shape[2]:
            self._buffers = [self._grown(i, x, 2 * end) for i, x in enumerate(news)]
        for buffer, x in zip(self._buffers, news):
            buffer[:, :, begin:end] = x
        self.length = end
        keys, values = (buffer[:, :, :end] for buffer in self._buffers)
        return keys, values

    def _grown(self, i: int, x: Any, capacity: int) -> Any:
        """Buffer ``i`` for so many positions, with those that it has."""
        n, heads, _, size = x.shape
        buffer = backend.get_array_module(x).empty((n, heads, capacity, size), x.dtype)
        if self._buffers:
            buffer[:, :, : self.length] = self._buffers[i][:, :, : self.length]
        return buffer


class MultiHeadAttention(Chain):
    """Projects queries, keys and values, attends in each head, and projects the result.

    Args:
        embed_dim: the size E of x and y; each head has E / ``num_heads`` features.
        num_heads: the number of heads.
        dropout: the probability with which weights are dropped in training.
        nobias: whether projections have no biases.
        rotary: whether queries and keys are rotated by their positions
            (``F.rotary_embedding``).
        rotary_base: the base of the angles.
        num_kv_heads: the number of heads of keys and values, each of which serves
            equally many heads of queries; ``num_heads`` unless given.

    Shapes:
        x, y: (N, L, E)
        memory: (N, S, E)
        in_proj.W: (E + 2 K, E), for queries, keys and values one after the other; K,
            the features of ``num_kv_heads`` heads, is E unless they are given
        out_proj.W: (E, E)

    Raises:
        ValueError: heads do not divide E, or those of keys those of queries.

    Source: Vaswani et al., Attention is all you need, 2017; Ainslie et al., GQA:
    training generalized multi-query transformer models, 2023.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        nobias: bool = False,
        rotary: bool = False,
        rotary_base: float = 10000.0,
        num_kv_heads: int | None = None,
    ) -> None:
        super().__init__()
        check_sizes(
            self, embed_dim=embed_dim, num_heads=num_heads, num_kv_heads=num_kv_heads
        )
        if num_heads < 1 or embed_dim % num_heads:
            raise ValueError(
                "MultiHeadAttention: expected num_heads that divide embed_dim, got "
                f"{num_heads} and {embed_dim}"
            )
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if num_kv_heads < 1 or num_heads % num_kv_heads:
            raise ValueError(
                "MultiHeadAttention: expected num_kv_heads that divide num_heads, got "
                f"{num_kv_heads} and {num_heads}"
            )
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.queries_per_key = num_heads // num_kv_heads
        self.dropout = dropout
        self.rotary = rotary
        self.rotary_base = rotary_base
        kv_dim = embed_dim // self.queries_per_key
        with self.init_scope():
            self.in_proj = Linear(embed_dim, embed_dim + 2 * kv_dim, nobias)
            self.out_proj = Linear(embed_dim, embed_dim, nobias)

    def forward(
        self,
        x: ArrayLike,
        memory: ArrayLike | None = None,
        attn_mask: ArrayLike | None = None,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> Variable:
        """The attention of ``x`` to itself, or to ``memory``.

        With a ``cache``, ``x`` are the positions after those in the cache, which are
        attended to, too. ``attn_mask`` is that of ``F.scaled_dot_product_attention``.

        Raises:
            ValueError: both a memory and a cache are given.
        """
        if memory is not None and cache is not None:
            raise ValueError("MultiHeadAttention: expected a memory or a cache")
        q, k, v = map(self._heads, self._projected(as_variable(x), memory))
        position = 0 if cache is None else cache.length
        if self.rotary:
            q, k = self._rotated(q, position), self._rotated(k, position)
        if cache is not None:
            k, v = map(as_variable, cache.append(k, v))
        if self.queries_per_key > 1:
            k, v = (repeat(x, self.queries_per_key, 1) for x in (k, v))
        if is_causal and position > 0:
            # Queries begin at a later position than keys.
            earlier = numpy.tri(q.shape[2], k.shape[2], position, dtype=bool)
            attn_mask = _both(self.xp, attn_mask, self.xp.asarray(earlier))
            is_causal = False
        y = self._attend(q, k, v, attn_mask, is_causal)
        n, heads, length, size = y.shape
        y = reshape(transpose(y, (0, 2, 1, 3)), (n, length, heads * size))
        return self.out_proj(y, n_batch_axes=2)

    def _projected(self, x: Variable, memory: Any) -> tuple[Variable, ...]:
        """Queries, keys and values of all heads."""
        if memory is None:
            y = self.in_proj(x, n_batch_axes=2)
            kv = y.shape[2] // (self.queries_per_key + 2)
            return tuple(split_axis(y, [y.shape[2] - 2 * kv, y.shape[2] - kv], 2))
        W, b = self._in_weights()
        size = W.shape[0] // (self.queries_per_key + 2) * self.queries_per_key
        q_W, kv_W = split_axis(W, [size], 0)
        q_b, kv_b = (None, None) if b is None else split_axis(b, [size], 0)
        q = linear(x, q_W, q_b, n_batch_axes=2)
        kv = linear(memory, kv_W, kv_b, n_batch_axes=2)
        return (q, *split_axis(kv, 2, 2))

    def _in_weights(self) -> tuple[Any, Any]:
        """The weight and the bias of the first projection."""
        return self.in_proj.W, self.in_proj.b

    def _rotated(self, x: Variable, position: int) -> Variable:
        return rotary_embedding(x, position, self.rotary_base)

    def _attend(
        self, q: Any, k: Any, v: Any, attn_mask: Any, is_causal: bool
    ) -> Variable:
        return scaled_dot_product_attention(q, k, v, attn_mask, self.dropout, is_causal)

    def _heads(self, x: Variable) -> Variable:
        """(N, L, E) as (N, H, L, D)."""
        size = self.embed_dim // self.num_heads
        heads = reshape(x, (*x.shape[:2], x.shape[2] // size, size))
        return transpose(heads, (0, 2, 1, 3))


def _both(xp: Any, mask: Any, allowed: Any) -> Any:
    """A mask together with one of bools."""
    if mask is None:
        return allowed
    nothing = xp.full((), False if mask.dtype == bool else -numpy.inf, mask.dtype)
    return where(allowed, mask, nothing)
