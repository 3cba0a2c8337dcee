"""Stacks of long short-term memory over sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions import n_step_bilstm, n_step_lstm
from renga.links.rnn.n_step_rnn import NStepRNNBase, refuse


class NStepLSTMBase(NStepRNNBase):
    """Stacks of long short-term memory; see ``NStepRNNBase``.

    The weights are those of the input gate, the forget gate, the candidate and the
    output gate.
    """

    n_weights = 8

    @property
    def n_cells(self) -> int:
        return 2

    def forward(  # type: ignore[override]
        self,
        hx: ArrayLike | None,
        cx: ArrayLike | None,
        xs: Sequence[ArrayLike],
        **kwargs: object,
    ) -> tuple[Variable | list[Variable], ...]:
        """The last states, the last cells and the outputs, ``(hy, cy, ys)``."""
        refuse(kwargs)
        return self._run((hx, cx), xs)


class NStepLSTM(NStepLSTMBase):
    """Long short-term memory over sequences.

    See ``renga.functions.n_step_lstm``.

    Source: Hochreiter and Schmidhuber, Long short-term memory, 1997.
    """

    use_bi_direction = False

    def rnn(self, *args: Any) -> tuple[Variable | tuple[Variable, ...], ...]:
        return n_step_lstm(*args)


class NStepBiLSTM(NStepLSTMBase):
    """``NStepLSTM`` in both directions."""

    use_bi_direction = True

    def rnn(self, *args: Any) -> tuple[Variable | tuple[Variable, ...], ...]:
        return n_step_bilstm(*args)
