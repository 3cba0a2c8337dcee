"""Private functions of recurrent ones, and the bases of those over sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga import functions as F
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable

Layers = Sequence[Sequence[ArrayLike]]
Steps = tuple[Variable, ...]

# chainer.functions.rnn.lstm


def _extract_gates(x: Any) -> list[Any]:
    """The four gates of (N, 4 n, …), of which every fourth channel is one's."""
    r = x.reshape((len(x), x.shape[1] // 4, 4, *x.shape[2:]))
    return [r[:, :, i] for i in range(4)]


def _sigmoid(x: Array, xp: Any = numpy) -> Array:
    """The sigmoid of an array."""
    return xp.tanh(x * 0.5) * 0.5 + 0.5


def _grad_sigmoid(x: Array) -> Array:
    """The derivative where the sigmoid is ``x``."""
    return x * (1 - x)


def _grad_tanh(x: Array) -> Array:
    """The derivative where the hyperbolic tangent is ``x``."""
    return 1 - x * x


# chainer.functions.rnn.n_step_lstm


def _lstm(x: Any, h: Any, c: Any, w: Any, b: Any) -> tuple[Variable, Variable]:
    """One step of a long short-term memory: the new output and the new cell.

    ``w`` and ``b`` are those of a layer of ``n_step_lstm``.
    """
    hy, cy, _ = F.n_step_lstm(1, 0.0, h[None], c[None], [w], [b], [x])
    return F.squeeze(hy, 0), F.squeeze(cy, 0)


def n_step_lstm_base(
    n_layers: int,
    dropout_ratio: float,
    hx: ArrayLike,
    cx: ArrayLike,
    ws: Layers,
    bs: Layers,
    xs: Sequence[ArrayLike],
    use_bi_direction: bool,
    **kwargs: object,
) -> tuple[Variable, Variable, Steps]:
    """``n_step_bilstm`` or ``n_step_lstm``."""
    function = F.n_step_bilstm if use_bi_direction else F.n_step_lstm
    return function(n_layers, dropout_ratio, hx, cx, ws, bs, xs, **kwargs)


# chainer.functions.rnn.n_step_gru


def n_step_gru_base(
    n_layers: int,
    dropout_ratio: float,
    hx: ArrayLike,
    ws: Layers,
    bs: Layers,
    xs: Sequence[ArrayLike],
    use_bi_direction: bool,
    **kwargs: object,
) -> tuple[Variable, Steps]:
    """``n_step_bigru`` or ``n_step_gru``."""
    function = F.n_step_bigru if use_bi_direction else F.n_step_gru
    return function(n_layers, dropout_ratio, hx, ws, bs, xs, **kwargs)


# chainer.functions.rnn.n_step_rnn


def n_step_rnn_base(
    n_layers: int,
    dropout_ratio: float,
    hx: ArrayLike,
    ws: Layers,
    bs: Layers,
    xs: Sequence[ArrayLike],
    activation: str,
    use_bi_direction: bool,
    **kwargs: object,
) -> tuple[Variable, Steps]:
    """``n_step_birnn`` or ``n_step_rnn``."""
    function = F.n_step_birnn if use_bi_direction else F.n_step_rnn
    return function(n_layers, dropout_ratio, hx, ws, bs, xs, activation, **kwargs)
