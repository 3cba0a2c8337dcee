"""GPT-2: a language model of causal attention."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from renga.backends import cuda
from renga.core.configuration import no_backprop_mode, using_config
from renga.core.link import Chain, ChainList
from renga.core.parameter import Parameter
from renga.core.variable import Variable, as_array
from renga.functions import dropout, gelu, position_embedding, softmax
from renga.initializers import Normal
from renga.links.attention.key_value_cache import KeyValueCache
from renga.links.attention.transformer_block import TransformerBlock
from renga.links.connection.embed_id import EmbedID
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
_IGNORED = re.compile(r"\.attn\.(masked_)?bias$|^lm_head\.")
# Layers whose weights are published as (in, out).
_TRANSPOSED = re.compile(r"\.c_(attn|proj|fc)\.weight$")


class GPT2(Chain):
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
        self, x: Any, caches: Sequence[KeyValueCache] | None = None
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

    def generate(self, x: Any, length: int, temperature: float = 1.0) -> Any:
        """``x`` with ``length`` more tokens, drawn one after the other.

        Scores are divided by the temperature: at 1 tokens have the model's
        probabilities, towards 0 the likeliest is drawn. Numbers are drawn from NumPy's
        global generator.

        Shapes:
            x: (N, L) of integers
            return: (N, L + length)

        Raises:
            ValueError: the temperature is not positive, or the text too long.
        """
        if temperature <= 0:
            raise ValueError(f"GPT2: expected a temperature above 0, got {temperature}")
        texts = [cuda.to_cpu(as_array(x))]
        caches = [KeyValueCache() for _ in self.blocks]
        with no_backprop_mode(), using_config("train", False):
            for _ in range(length):
                scores = self(self.xp.asarray(texts[-1]), caches)[:, -1]
                p = cuda.to_cpu(softmax(scores / temperature).array)
                texts.append(_drawn(p).astype(texts[0].dtype)[:, None])
        return numpy.concatenate(texts, 1)

    def torch_state(
        self, state: Mapping[str, numpy.ndarray]
    ) -> dict[str, numpy.ndarray]:
        """The published arrays with the names of the parts here."""
        renamed = {}
        for name, array in state.items():
            if _IGNORED.search(name):
                continue
            own = name
            for pattern, part in _NAMES.items():
                own = re.sub(pattern, part, own)
            renamed[own] = array.T if _TRANSPOSED.search(name) else array
        return renamed


def _drawn(p: numpy.ndarray) -> numpy.ndarray:
    """An index from each row of probabilities."""
    sums = numpy.cumsum(p, 1, dtype=numpy.float64)
    drawn = numpy.random.random_sample((len(p), 1)) * sums[:, -1:]
    return numpy.minimum((sums <= drawn).sum(1), p.shape[1] - 1)
