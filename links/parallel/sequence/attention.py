"""SequenceMultiHeadAttention: attention of sharded tokens."""

from __future__ import annotations

from typing import Any

from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions import rotary_embedding
from renga.links.attention.multi_head_attention import KeyValueCache, MultiHeadAttention
from renga.links.parallel.forms import parallel_form
from renga.links.parallel.sequence.links import (
    SequenceLinear,
    SequenceLink,
    is_sharded,
    unchecked,
)
from renga.links.parallel.sequence.ring_attention import ring_attention
from renga.utils.type_check import InvalidType


@parallel_form(MultiHeadAttention, "sequence")
class SequenceMultiHeadAttention(SequenceLink, MultiHeadAttention):
    """``MultiHeadAttention`` of this rank's tokens to the tokens of all ranks.

    Keys and values are passed round the ranks (``ring_attention``). Masks are those of
    all tokens.

    Args:
        comm: the communicator of the ranks.
        embed_dim, …: as for MultiHeadAttention.

    Shapes:
        x, y: (N, tokens of this rank, E)
        memory: (N, memory's tokens of this rank, E)
        attn_mask: broadcasts to (N, H, L, S) of all tokens

    Raises:
        ValueError: a cache is given.
        InvalidType: the memory is not sharded, but ``x`` is.
    """

    algorithm = "ring attention"

    def _broadcast(self) -> None:
        for name in ("in_proj", "out_proj"):
            serial = getattr(self, name)
            delattr(self, name)
            with self.init_scope():
                setattr(self, name, SequenceLinear.from_link(serial, self.comm))

    def forward(
        self,
        x: ArrayLike,
        memory: ArrayLike | None = None,
        attn_mask: ArrayLike | None = None,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> Variable:
        """The attention of ``x``, as that of MultiHeadAttention."""
        if cache is not None:
            raise ValueError(
                "SequenceMultiHeadAttention: expected no cache, as tokens are sharded"
            )
        others = [] if memory is None else [memory]
        if any(not is_sharded(a) for a in (x, *others)):
            raise InvalidType(
                "SequenceMultiHeadAttention: expected this rank's tokens, got "
                f"replicated {' and '.join(str(a.shape) for a in (x, *others))}"
            )
        with unchecked():
            return super().forward(x, memory, attn_mask, is_causal)

    def _in_weights(self) -> tuple[Any, Any]:
        return self._summed(self.in_proj.W), self._summed(self.in_proj.b)

    def _rotated(self, x: Variable, position: int) -> Variable:
        return rotary_embedding(x, self.comm.rank, self.rotary_base, self.comm.size)

    def _attend(
        self, q: Any, k: Any, v: Any, attn_mask: Any, is_causal: bool
    ) -> Variable:
        return ring_attention(self.comm, q, k, v, attn_mask, self.dropout, is_causal)
