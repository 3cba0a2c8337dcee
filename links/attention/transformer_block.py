"""TransformerBlock: attention and two layers, each normalized before or after."""

from __future__ import annotations

from typing import Callable

from renga.core.link import Chain
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_variable
from renga.functions import dropout, gelu
from renga.links.attention.multi_head_attention import KeyValueCache, MultiHeadAttention
from renga.links.connection.linear import Linear
from renga.links.normalization.layer_normalization import LayerNormalization


class TransformerBlock(Chain):
    """``x + attention(norm1(x))``, and then ``x + down(activation(up(norm2(x))))``.

    If normalizations do not come first, it is ``norm1(x + attention(x))``, and then
    ``norm2(x + down(activation(up(x))))``.

    Args:
        embed_dim: the size E of x and y.
        num_heads: the number of heads.
        hidden: the size between the two layers, 4 E unless given.
        dropout: the probability with which results and weights of the attention are
            dropped in training.
        activation: the function between the two layers.
        eps: that of the normalizations.
        rotary: as for ``MultiHeadAttention``.
        norm_first: whether normalizations come before the layers, or after the sums.

    Shapes:
        x, y: (N, L, E)

    Source: Radford et al., Language models are unsupervised multitask learners, 2019.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        hidden: int | None = None,
        dropout: float = 0.0,
        activation: Callable[[Variable], Variable] = gelu,
        eps: float = 1e-5,
        rotary: bool = False,
        norm_first: bool = True,
    ) -> None:
        super().__init__()
        hidden = 4 * embed_dim if hidden is None else hidden
        self.dropout = dropout
        self.activation = activation
        self.norm_first = norm_first
        with self.init_scope():
            self.norm1 = LayerNormalization(embed_dim, eps)
            self.attention = MultiHeadAttention(
                embed_dim, num_heads, dropout, rotary=rotary
            )
            self.norm2 = LayerNormalization(embed_dim, eps)
            self.up = Linear(embed_dim, hidden)
            self.down = Linear(hidden, embed_dim)

    def forward(
        self,
        x: ArrayLike,
        attn_mask: ArrayLike | None = None,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> Variable:
        """The output for ``x``; the options are those of the attention."""
        x = as_variable(x)
        h = self.norm1(x) if self.norm_first else x
        y = x + dropout(
            self.attention(h, None, attn_mask, is_causal, cache), self.dropout
        )
        y = y if self.norm_first else self.norm1(y)
        h = self.norm2(y) if self.norm_first else y
        h = self.activation(self.up(h, n_batch_axes=2))
        y = y + dropout(self.down(h, n_batch_axes=2), self.dropout)
        return y if self.norm_first else self.norm2(y)
