"""Llama: a language model of gated layers and rotated queries and keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga.core.link import Chain, ChainList
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions import silu
from renga.initializers import Normal
from renga.links.attention.multi_head_attention import KeyValueCache, MultiHeadAttention
from renga.links.connection.embed_id import EmbedID
from renga.links.connection.linear import Linear
from renga.links.model.language.language_model import LanguageModel
from renga.links.model.torch_names import State, renamed, with_joined_projections
from renga.links.normalization.layer_normalization import RMSNormalization

# The published names, and those of the parts here.
_NAMES = {
    r"^model\.": "",
    r"^embed_tokens\.": "tokens.",
    r"^layers\.": "blocks.",
    r"^lm_head\.": "out.",
    r"\.input_layernorm\.": ".norm1.",
    r"\.post_attention_layernorm\.": ".norm2.",
    r"\.self_attn\.([qkv])_proj\.": r".attention.in_proj.\1.",
    r"\.self_attn\.o_proj\.": ".attention.out_proj.",
    r"\.mlp\.(gate|up|down)_proj\.": r".\1.",
}


class LlamaBlock(Chain):
    """Attention and a gated layer, each normalized before: the output is the sum.

    The gated layer is ``down(silu(gate(x)) up(x))``.

    Args:
        embed_dim: the size E of x and y.
        hidden: the size between the layers.
        eps: that of the normalizations.
        attention: the number of heads, and options of ``MultiHeadAttention``.

    Shapes:
        x, y: (N, L, E)
    """

    def __init__(
        self, embed_dim: int, hidden: int, eps: float, **attention: Any
    ) -> None:
        super().__init__()
        W = Normal(0.02)
        with self.init_scope():
            self.norm1 = RMSNormalization(embed_dim, eps)
            self.attention = MultiHeadAttention(
                embed_dim, nobias=True, rotary=True, **attention
            )
            self.norm2 = RMSNormalization(embed_dim, eps)
            self.gate = Linear(embed_dim, hidden, True, W)
            self.up = Linear(embed_dim, hidden, True, W)
            self.down = Linear(hidden, embed_dim, True, W)

    def forward(self, x: ArrayLike, cache: KeyValueCache | None = None) -> Variable:
        """The output for ``x``, with positions in the ``cache`` before."""
        x = x + self.attention(self.norm1(x), is_causal=True, cache=cache)
        h = self.norm2(x)
        gate = silu(self.gate(h, n_batch_axes=2))
        return x + self.down(gate * self.up(h, n_batch_axes=2), n_batch_axes=2)


class Llama(LanguageModel):
    """Blocks of causal attention over the tokens of a text, of any length.

    ``load_torch_state_dict`` loads weights that are published for the family, Llama 2
    and Llama 3 among them, and others of the same structure. Angles are not scaled, as
    they are from Llama 3.1 on.

    Args:
        vocabulary: the number of tokens.
        embed_dim: the size of a token's vector.
        num_layers: the number of blocks.
        num_heads: the number of heads of each.
        hidden: the size between the layers of a block.
        num_kv_heads, rotary_base: as for ``MultiHeadAttention``.
        eps: that of the normalizations.
        tied: whether scores are products with the embeddings of tokens.

    Shapes:
        x: (N, L) of integers
        y: (N, L, vocabulary), before softmax

    Source: Touvron et al., LLaMA: open and efficient foundation language models, 2023.
    """

    def __init__(
        self,
        vocabulary: int = 32000,
        embed_dim: int = 4096,
        num_layers: int = 32,
        num_heads: int = 32,
        hidden: int = 11008,
        num_kv_heads: int | None = None,
        rotary_base: float = 10000.0,
        eps: float = 1e-5,
        tied: bool = False,
    ) -> None:
        super().__init__()
        W = Normal(0.02)
        attention = {
            "num_heads": num_heads,
            "num_kv_heads": num_kv_heads,
            "rotary_base": rotary_base,
        }
        with self.init_scope():
            self.tokens = EmbedID(vocabulary, embed_dim, W)
            self.blocks = ChainList(
                *(
                    LlamaBlock(embed_dim, hidden, eps, **attention)
                    for _ in range(num_layers)
                )
            )
            self.norm = RMSNormalization(embed_dim, eps)
            self.out = None if tied else Linear(embed_dim, vocabulary, True, W)

    def forward(
        self, x: ArrayLike, caches: Sequence[KeyValueCache] | None = None
    ) -> Variable:
        """The scores of the token after each, as those of ``LanguageModel``."""
        h = self.tokens(x)
        for i, block in enumerate(self.blocks):
            h = block(h, caches[i] if caches else None)
        h = self.norm(h)
        return self.tokens.attend(h) if self.out is None else self.out(h, 2)

    def torch_state(self, state: State) -> dict[str, numpy.ndarray]:
        """The published arrays with the names of the parts here."""
        ignored = r"\.rotary_emb\." + ("" if self.out else r"|^lm_head\.")
        return with_joined_projections(renamed(state, _NAMES, ignored))
