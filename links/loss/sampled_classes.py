"""Losses of a word against others drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import Array, ArrayLike, DTypeLike
from renga.core.variable import Variable
from renga.functions import black_out
from renga.functions.loss import negative_sampling
from renga.initializers import Constant
from renga.utils.argument import parse_kwargs
from renga.utils.extents import check_count, check_sizes
from renga.utils.walker_alias import WalkerAlias


class BlackOut(Link):
    """The loss of a word against words drawn by their ``counts``.

    ``W`` is initially NaN. ``sample_data`` sets the words to compare with, instead of
    drawn ones.

    Shapes:
        x: (N, in_size)
        t: (N,)
        W: (number of words, in_size)
        sample_data: (N, sample_size)

    Source: Ji et al., BlackOut: speeding up recurrent neural network language models
    with very large vocabularies, 2015.
    """

    W: Parameter
    sample_data: Any = None

    def __init__(self, in_size: int, counts: Sequence[int], sample_size: int) -> None:
        super().__init__()
        check_sizes(self, in_size=in_size)
        self.sample_size = check_count("BlackOut", "sample_size", sample_size)
        self.sampler = WalkerAlias(counts)
        with self.init_scope():
            self.W = Parameter(shape=(len(counts), in_size))

    def forward(self, x: ArrayLike, t: ArrayLike) -> Variable:
        """The mean loss of the words ``t``."""
        samples = self.sample_data
        if samples is None:
            samples = self.sampler.sample((len(x), self.sample_size))
        return black_out(x, t, self.W, samples)


class NegativeSampling(Link):
    """The loss of a word against words drawn by their ``counts ** power``.

    Shapes:
        x: (N, in_size)
        t: (N,); samples with -1 are ignored
        W: (number of words, in_size), initially zeros

    Source: Mikolov et al., Distributed representations of words and phrases and their
    compositionality, 2013.
    """

    W: Parameter

    def __init__(
        self,
        in_size: int,
        counts: Sequence[int],
        sample_size: int,
        power: float = 0.75,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, in_size=in_size)
        self.sample_size = check_count("NegativeSampling", "sample_size", sample_size)
        self.sampler = WalkerAlias(numpy.power(numpy.asarray(counts, "f"), power))
        with self.init_scope():
            self.W = Parameter(Constant(0, dtype), (len(counts), in_size))

    def forward(
        self, x: ArrayLike, t: ArrayLike, reduce: str = "sum", **kwargs: object
    ) -> Variable | tuple[Variable, Array]:
        """The loss, with ``return_samples=True`` also the sampled words."""
        (return_samples,) = parse_kwargs(kwargs, ("return_samples", False))
        return negative_sampling.negative_sampling(
            x,
            t,
            self.W,
            self.sampler.sample,
            self.sample_size,
            reduce=reduce,
            return_samples=return_samples,
        )
