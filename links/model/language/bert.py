"""BERT: vectors of the words of a text, and scores of the words that are masked."""

from __future__ import annotations

import numpy

from renga.backends import cuda
from renga.core.configuration import no_backprop_mode, using_config
from renga.core.link import Chain, ChainList
from renga.core.parameter import Parameter
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable, as_array
from renga.functions import dropout, gelu, position_embedding, reshape
from renga.initializers import Normal
from renga.links.attention.transformer_block import TransformerBlock
from renga.links.connection.embed_id import EmbedID
from renga.links.connection.linear import Linear
from renga.links.model.torch_names import State, renamed, with_joined_projections
from renga.links.normalization.layer_normalization import LayerNormalization

# The published names, and those of the parts here.
_NAMES = {
    r"^bert\.": "",
    r"^embeddings\.word_embeddings\.": "tokens.",
    r"^embeddings\.position_embeddings\.weight$": "positions",
    r"^embeddings\.token_type_embeddings\.": "kinds.",
    r"^embeddings\.LayerNorm\.": "norm.",
    r"^encoder\.layer\.": "blocks.",
    r"\.attention\.self\.(\w)\w+\.": r".attention.in_proj.\1.",
    r"\.attention\.output\.dense\.": ".attention.out_proj.",
    r"\.attention\.output\.LayerNorm\.": ".norm1.",
    r"\.intermediate\.dense\.": ".up.",
    r"\.output\.dense\.": ".down.",
    r"\.output\.LayerNorm\.": ".norm2.",
    r"^cls\.predictions\.transform\.dense\.": "transform.",
    r"^cls\.predictions\.transform\.LayerNorm\.": "last_norm.",
    r"^cls\.predictions\.bias$": "b",
}
# Numbers of positions, the layers for whole texts, and names of tied parameters.
_IGNORED = r"position_ids$|\.pooler\.|^cls\.seq_relationship\.|\.decoder\."


class BERT(Chain):
    """Blocks of attention over the tokens of a text, normalized after each layer.

    ``load_torch_state_dict`` loads the weights that are published for the default
    sizes, without the layers for whole texts.

    Args:
        vocabulary: the number of tokens.
        context: the largest number of tokens of a text.
        embed_dim: the size E of a token's vector.
        num_layers: the number of blocks.
        num_heads: the number of heads of each.
        dropout: the probability with which results of parts are dropped in training.

    Shapes:
        x: (N, L) of integers, L at most ``context``
        y: (N, L, vocabulary), before softmax

    Source: Devlin et al., BERT: pre-training of deep bidirectional transformers for
    language understanding, 2019.
    """

    def __init__(
        self,
        vocabulary: int = 30522,
        context: int = 512,
        embed_dim: int = 768,
        num_layers: int = 12,
        num_heads: int = 12,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        W, eps = Normal(0.02), 1e-12
        with self.init_scope():
            self.tokens = EmbedID(vocabulary, embed_dim, W)
            self.positions = Parameter(W, (context, embed_dim))
            self.kinds = EmbedID(2, embed_dim, W)
            self.norm = LayerNormalization(embed_dim, eps)
            self.blocks = ChainList(
                *(
                    TransformerBlock(
                        embed_dim, num_heads, dropout=dropout, eps=eps, norm_first=False
                    )
                    for _ in range(num_layers)
                )
            )
            self.transform = Linear(embed_dim, embed_dim, initialW=W)
            self.last_norm = LayerNormalization(embed_dim, eps)
            self.b = Parameter(0, vocabulary)

    def forward(
        self,
        x: ArrayLike,
        kinds: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        places: ArrayLike | None = None,
    ) -> Variable:
        """The scores of the word in each place; arguments as for ``encode``.

        With ``places``, indices into the N L tokens, y is (places, vocabulary).
        """
        h = self.encode(x, kinds, mask)
        if places is not None:
            h = reshape(h, (-1, h.shape[-1]))[places]
        h = gelu(self.transform(h, n_batch_axes=h.ndim - 1))
        return self.tokens.attend(self.last_norm(h)) + self.b

    def encode(
        self,
        x: ArrayLike,
        kinds: ArrayLike | None = None,
        mask: ArrayLike | None = None,
    ) -> Variable:
        """The vectors of the tokens.

        Args:
            x: the tokens.
            kinds: 0 for those of a first text, 1 for those of a second; 0 unless given.
            mask: True for tokens, False for padding; there is none unless given.

        Shapes:
            x, kinds, mask: (N, L)
            return: (N, L, E)
        """
        h = self.tokens(x) + position_embedding(self.positions, x)
        h = h + (self.kinds.W[0] if kinds is None else self.kinds(kinds))
        h = dropout(self.norm(h), self.dropout)
        if mask is not None:
            mask = mask[:, None, None, :]
        for block in self.blocks:
            h = block(h, mask)
        return h

    def predict(self, x: ArrayLike, masked: int = 103) -> Array:
        """``x`` with the likeliest words in place of the tokens ``masked``.

        Shapes:
            x, return: (N, L) of integers
        """
        words = cuda.to_cpu(as_array(x)).copy()
        places = (words.ravel() == masked).nonzero()[0]
        with no_backprop_mode(), using_config("train", False):
            scores = self(self.xp.asarray(words), places=places)
        words[words == masked] = cuda.to_cpu(scores.array).argmax(1)
        return words

    def torch_state(self, state: State) -> dict[str, numpy.ndarray]:
        """The published arrays with the names of the parts here."""
        return with_joined_projections(renamed(state, _NAMES, _IGNORED))
