"""CRF1d: a linear-chain conditional random field."""

from __future__ import annotations

from collections.abc import Sequence

from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import Array, ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import argmax_crf1d, crf1d, transpose_sequence
from renga.initializers import get_initializer
from renga.utils.extents import check_sizes


class CRF1d(Link):
    """The negative log-likelihood of label sequences, and the most likely ones.

    Sequences are given step by step, sorted by length (longest first), or with
    ``transpose`` one by one.

    Shapes:
        xs: scores of (samples, n_label) of each step
        ys: labels of (samples,) of each step
        cost: (n_label, n_label), from a label to the next, initially zeros

    Source: Lafferty et al., Conditional random fields, 2001.
    """

    cost: Parameter

    def __init__(self, n_label: int, initial_cost: Initial | None = None) -> None:
        super().__init__()
        check_sizes(self, n_label=n_label)
        cost = 0 if initial_cost is None else initial_cost
        with self.init_scope():
            self.cost = Parameter(get_initializer(cost), (n_label, n_label))

    def forward(
        self,
        xs: Sequence[ArrayLike],
        ys: Sequence[ArrayLike],
        reduce: str = "mean",
        transpose: bool = False,
    ) -> Variable:
        """The loss: the mean over samples, or with ``reduce`` ``"no"`` each one's."""
        if transpose:
            xs, ys = transpose_sequence(xs), transpose_sequence(ys)
        return crf1d(self.cost, xs, ys, reduce)

    def argmax(
        self, xs: Sequence[ArrayLike], transpose: bool = False
    ) -> tuple[Variable, list[Array]]:
        """The best score of each sample, and the labels that reach it."""
        if transpose:
            xs = transpose_sequence(xs)
        score, path = argmax_crf1d(self.cost, xs)
        if transpose:
            path = [labels.array for labels in transpose_sequence(path)]
        return score, path
