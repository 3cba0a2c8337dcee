"""ParallelMultiHeadAttention: attention whose heads are sharded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from renga.communicators import Communicator
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_variable
from renga.links.attention.multi_head_attention import KeyValueCache, MultiHeadAttention
from renga.links.parallel.channel.linear import ParallelLinear
from renga.links.parallel.channel.link import LinkChoice, values_of
from renga.links.parallel.forms import copied_as, parallel_form
from renga.parallel.placement.shard_ranges import shard_ranges
from renga.parallel.placement.sharded_parameter import Block, ShardedParameter
from renga.parallel.placement.whole_reads import reads_own_shards
from renga.parallel.redistribute import with_summed_gradient
from renga.utils.type_check import InvalidType


@parallel_form(MultiHeadAttention, "channel")
class ParallelMultiHeadAttention(MultiHeadAttention):
    """``MultiHeadAttention`` of which each rank has some heads.

    The projection to queries, keys and values is sharded by its outputs, that of the
    results by its inputs, so that one all-reduce adds up what the heads contribute,
    and one the gradients of x. A key-value cache holds this rank's heads.

    Args:
        comm: the communicator of the ranks.
        embed_dim, …: as for MultiHeadAttention.

    Shapes:
        x, memory, y: (N, L, E), the same on every rank
        in_proj.W: this rank's heads of the queries, keys and values of (E + 2 K, E)
        out_proj.W: this rank's columns of (E, E)

    Source: Shoeybi et al., Megatron-LM, 2019.
    """

    out_proj: Any
    algorithm = "heads"
    input_layout = output_layout = "replicated"

    def __init__(self, comm: Communicator, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._shard(comm)

    @classmethod
    def from_link(
        cls,
        link: MultiHeadAttention,
        comm: Communicator,
        choice: LinkChoice | None = None,
        call: object = None,
    ) -> ParallelMultiHeadAttention:
        """This rank's heads of a serial link."""
        new = copied_as(cls, link)
        new._shard(comm)
        return new

    def _shard(self, comm: Communicator) -> None:
        self.comm = comm
        size, inner, outer = self.embed_dim, self.in_proj, self.out_proj
        kv_size = size // self.queries_per_key
        head_size = size // self.num_heads
        # The heads of queries that a head of keys serves are on its rank.
        served = self.queries_per_key * head_size
        blocks = []
        for q, kv in zip(
            shard_ranges(size, comm.size, served),
            shard_ranges(kv_size, comm.size, head_size),
        ):
            k, v = (range(i + kv.start, i + kv.stop) for i in (size, size + kv_size))
            blocks.append(Block({0: [q, k, v]}))
        with inner.init_scope():
            inner.W = _sharded(comm, inner.W, blocks)
            if inner.b is not None:
                inner.b = _sharded(comm, inner.b, blocks)
        del self.out_proj
        with self.init_scope():
            self.out_proj = ParallelLinear(
                comm,
                size,
                size,
                outer.b is None,
                values_of(outer.W),
                values_of(outer.b),
                input_layout="channel",
                algorithm="row-parallel" if comm.size > 1 else None,
                pixels=served,
            )

    @reads_own_shards
    def forward(
        self,
        x: ArrayLike,
        memory: ArrayLike | None = None,
        attn_mask: ArrayLike | None = None,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> Variable:
        """The attention of ``x``, as that of MultiHeadAttention.

        A mask of each head has this rank's heads.

        Raises:
            InvalidType: the mask has other heads.
        """
        # Each rank finds the gradient through its heads.
        x = with_summed_gradient(self.comm, as_variable(x))
        if memory is not None:
            memory = with_summed_gradient(self.comm, as_variable(memory))
        return super().forward(x, memory, attn_mask, is_causal, cache)

    def _attend(
        self, q: Any, k: Any, v: Any, attn_mask: Any, is_causal: bool
    ) -> Variable:
        heads = attn_mask.shape[-3] if getattr(attn_mask, "ndim", 0) > 2 else 1
        if heads not in (1, q.shape[1]):
            raise InvalidType(
                f"ParallelMultiHeadAttention: expected attn_mask of this rank's "
                f"{q.shape[1]} of {self.num_heads} heads, or one for all heads, got "
                f"{attn_mask.shape}"
            )
        return super()._attend(q, k, v, attn_mask, is_causal)


def _sharded(
    comm: Communicator, param: Any, blocks: Sequence[Block]
) -> ShardedParameter:
    return ShardedParameter(comm, values_of(param), blocks, param.shape)
