"""Stacks of gated recurrent units over sequences."""

from __future__ import annotations

from typing import Any

from renga._core import Variable
from renga.functions import n_step_bigru, n_step_gru
from renga.links.rnn.n_step_rnn import NStepRNNBase


class NStepGRUBase(NStepRNNBase):
    """Stacks of gated recurrent units; see ``NStepRNNBase``.

    The weights are those of the reset gate, the update gate and the candidate.
    """

    n_weights = 6


class NStepGRU(NStepGRUBase):
    """Gated recurrent units over sequences; see ``renga.functions.n_step_gru``.

    Source: Cho et al., Learning phrase representations using RNN encoder-decoder,
    2014.
    """

    use_bi_direction = False

    def rnn(self, *args: Any) -> tuple[Variable | tuple[Variable, ...], ...]:
        return n_step_gru(*args)


class NStepBiGRU(NStepGRUBase):
    """``NStepGRU`` in both directions."""

    use_bi_direction = True

    def rnn(self, *args: Any) -> tuple[Variable | tuple[Variable, ...], ...]:
        return n_step_bigru(*args)
