"""LanguageModel: base of models that score the next token of texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from renga.backends import cuda
from renga.core.configuration import no_backprop_mode, using_config
from renga.core.link import Chain, ChainList
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable, as_array
from renga.functions import softmax
from renga.links.attention.multi_head_attention import KeyValueCache


class LanguageModel(Chain):
    """``blocks`` of causal attention over the tokens of a text."""

    blocks: ChainList

    def forward(
        self, x: ArrayLike, caches: Sequence[KeyValueCache] | None = None
    ) -> Variable:
        """The scores of the token after each.

        With ``caches``, one for each block, ``x`` are the tokens after those that the
        caches hold.

        Shapes:
            x: (N, L) of integers
            return: (N, L, vocabulary)
        """
        raise NotImplementedError

    def generate(self, x: ArrayLike, length: int, temperature: float = 1.0) -> Array:
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
            raise ValueError(
                f"{type(self).__name__}: expected a temperature above 0, got "
                f"{temperature}"
            )
        texts = [cuda.to_cpu(as_array(x))]
        caches = [KeyValueCache() for _ in self.blocks]
        with no_backprop_mode(), using_config("train", False):
            for _ in range(length):
                scores = self(self.xp.asarray(texts[-1]), caches)[:, -1]
                p = cuda.to_cpu(softmax(scores / temperature).array)
                texts.append(_drawn(p).astype(texts[0].dtype)[:, None])
        return numpy.concatenate(texts, 1)


def _drawn(p: numpy.ndarray) -> numpy.ndarray:
    """An index from each row of probabilities."""
    sums = numpy.cumsum(p, 1, dtype=numpy.float64)
    drawn = numpy.random.random_sample((len(p), 1)) * sums[:, -1:]
    return numpy.minimum((sums <= drawn).sum(1), p.shape[1] - 1)
