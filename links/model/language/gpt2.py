"""GPT-2: a language model of causal attention."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

import numpy

from renga.core.link import ChainList
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions import dropout, gelu, position_embedding
from renga.initializers import Normal
from renga.links.attention.multi_head_attention import KeyValueCache
from renga.links.attention.transformer_block import TransformerBlock
from renga.links.connection.embed_id import EmbedID
from renga.links.model.language.language_model import LanguageModel
from renga.links.model.torch_names import State, renamed
from renga.links.normalization.layer_normalization import LayerNormalization

# The published names, and those of the parts here.
_NAMES = {
    r"^transformer\.": "",
    r"^wte\.": "tokens.",
    r"^wpe\.weight$": "positions",
    r"^h\.": "blocks.",
    r"^ln_f\.": "norm.",
    r"\.ln_([12])\.": r".norm\1.",
    r"\.attn\.c_attn\.": ".attention.in_proj.",
    r"\.attn\.c_proj\.": ".attention.out_proj.",
    r"\.mlp\.c_fc\.": ".up.",
    r"\.mlp\.c_proj\.": ".down.",
}
# Masks of the attention, and the embedding once more.
_IGNORED = r"\.attn\.(masked_)?bias$|^lm_head\."
# Layers whose weights are published as (in, out).
_TRANSPOSED = re.compile(r"\.c_(attn|proj|fc)\.weight$")


class GPT2(LanguageModel):
    """Blocks of causal attention over the tokens of a text.

    The scores of the next token are products with the embeddings of tokens.
    ``load_torch_state_dict`` loads the weights that are published for the default
    sizes.

    Args:
        vocabulary: the number of tokens.
        context: the largest number of tokens of a text.
        embed_dim: the size of a token's vector.
        num_layers: the number of blocks.
        num_heads: the number of heads of each.
        dropout: the probability with which results of parts are dropped in training.

    Shapes:
        x: (N, L) of integers, L at most ``context``
        y: (N, L, vocabulary), before softmax

    Source: Radford et al., Language models are unsupervised multitask learners, 2019.
    """

    def __init__(
        self,
        vocabulary: int = 50257,
        context: int = 1024,
        embed_dim: int = 768,
        num_layers: int = 12,
        num_heads: int = 12,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.context = context
        self.dropout = dropout
        activation = functools.partial(gelu, approximate="tanh")
        with self.init_scope():
            self.tokens = EmbedID(vocabulary, embed_dim, Normal(0.02))
            self.positions = Parameter(Normal(0.02), (context, embed_dim))
            self.blocks = ChainList(
                *(
                    TransformerBlock(
                        embed_dim, num_heads, dropout=dropout, activation=activation
                    )
                    for _ in range(num_layers)
                )
            )
            self.norm = LayerNormalization(embed_dim, 1e-5)

    def forward(
        self, x: ArrayLike, caches: Sequence[KeyValueCache] | None = None
    ) -> Variable:
        """The scores of the token after each.

        With ``caches``, one for each block, ``x`` are the tokens after those that the
        caches hold.

        Raises:
            ValueError: there are more tokens than the context.
        """
        begin = caches[0].length if caches else 0
        end = begin + x.shape[1]
        if end > self.context:
            raise ValueError(f"GPT2: expected {self.context} tokens at most, got {end}")
        h = dropout(
            self.tokens(x) + position_embedding(self.positions, x, begin), self.dropout
        )
        for i, block in enumerate(self.blocks):
            h = block(h, is_causal=True, cache=caches[i] if caches else None)
        return self.tokens.attend(self.norm(h))

    def torch_state(self, state: State) -> dict[str, numpy.ndarray]:
        """The published arrays with the names of the parts here."""
        turned = {
            name: array.T if _TRANSPOSED.search(name) else array
            for name, array in state.items()
        }
        return renamed(turned, _NAMES, _IGNORED)
