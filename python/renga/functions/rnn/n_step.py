"""Recurrent networks over sequences, in layers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.rnn.layers import Layer, old_keywords, run_layers
from renga.utils.argument import parse_kwargs


def n_step_rnn(
    n_layers: int,
    dropout_ratio: float,
    hx: ArrayLike,
    ws: Sequence[Sequence[ArrayLike]],
    bs: Sequence[Sequence[ArrayLike]],
    xs: Sequence[ArrayLike],
    activation: str = "tanh",
    **kwargs: object,
) -> tuple[Variable, tuple[Variable, ...]]:
    """The last outputs and the outputs of every step.

    Step t has the B_t sequences longer than t, sorted by length, longest first. Each
    layer computes ``h = f(W0 x + b0 + W1 h + b1)`` with f "tanh" or "relu".
    Between layers there is dropout.

    Shapes:
        hx: (layers, B, N)
        ws: (N, I) and (N, N) per layer; I = N after the first
        bs: (N,) twice per layer
        xs: (B_t, I)
        return: (layers, B, N), (B_t, N) for each step

    Raises:
        ValueError: an unknown activation.
        InvalidType: shapes or dtypes do not fit.
    """
    parse_kwargs(kwargs, **old_keywords("n_step_rnn"))
    layer, args = _rnn("n_step_rnn", activation), ((hx,), ws, bs, xs, False)
    (hy,), ys = run_layers("n_step_rnn", 2, layer, n_layers, dropout_ratio, *args)
    return hy, ys


def n_step_birnn(
    n_layers: int,
    dropout_ratio: float,
    hx: ArrayLike,
    ws: Sequence[Sequence[ArrayLike]],
    bs: Sequence[Sequence[ArrayLike]],
    xs: Sequence[ArrayLike],
    activation: str = "tanh",
    **kwargs: object,
) -> tuple[Variable, tuple[Variable, ...]]:
    """``n_step_rnn`` in both directions; the outputs of both side by side.

    Weights and states alternate: layer 0 forward, layer 0 backward, layer 1 forward, …

    Shapes:
        hx: (2 layers, B, N)
        ws: as for ``n_step_rnn``, with I = 2 N after the first layer
        return: (2 layers, B, N), (B_t, 2 N) for each step
    """
    parse_kwargs(kwargs, **old_keywords("n_step_birnn"))
    layer, args = _rnn("n_step_birnn", activation), ((hx,), ws, bs, xs, True)
    (hy,), ys = run_layers("n_step_birnn", 2, layer, n_layers, dropout_ratio, *args)
    return hy, ys


def _rnn(name: str, activation: str) -> Layer:
    if activation not in ("tanh", "relu"):
        raise ValueError(f"{name}: expected 'tanh' or 'relu', got {activation!r}")
    return functools.partial(_rnn_layer, activation)


def _rnn_layer(
    f: str,
    w: Sequence[Any],
    b: Sequence[Any],
    x: Any,
    h: Any,
    lengths: list[int],
    backwards: bool,
) -> tuple[Any, ...]:
    ops = _core.ops
    gate_inputs = ops.linear(x, w[0], ops.add(b[0], b[1]))
    return ops.rnn_layer(gate_inputs, h, w[1], lengths, backwards, f)


def n_step_gru(
    n_layers: int,
    dropout_ratio: float,
    hx: ArrayLike,
    ws: Sequence[Sequence[ArrayLike]],
    bs: Sequence[Sequence[ArrayLike]],
    xs: Sequence[ArrayLike],
    **kwargs: object,
) -> tuple[Variable, tuple[Variable, ...]]:
    """The last outputs and the outputs of every step.

    Step t has the B_t sequences longer than t, sorted by length, longest first. Each
    layer has six weights, three for its input x and three for its last output h, and as
    many biases, for the gates r and z and the candidate a: ``a = tanh(W2 x + b2 + r (W5
    h + b5))`` and ``h = (1 - z) a + z h``. Between layers there is dropout.

    Shapes:
        hx: (layers, B, N)
        ws: (N, I) three times and (N, N) three times, per layer; I = N after the first
        bs: (N,) six times per layer
        xs: (B_t, I)
        return: (layers, B, N), (B_t, N) for each step

    Raises:
        InvalidType: shapes or dtypes do not fit.

    Source: Cho et al., Learning phrase representations using RNN encoder-decoder, 2014.
    """
    parse_kwargs(kwargs, **old_keywords("n_step_gru"))
    args = ((hx,), ws, bs, xs, False)
    (hy,), ys = run_layers("n_step_gru", 6, _gru_layer, n_layers, dropout_ratio, *args)
    return hy, ys


def n_step_bigru(
    n_layers: int,
    dropout_ratio: float,
    hx: ArrayLike,
    ws: Sequence[Sequence[ArrayLike]],
    bs: Sequence[Sequence[ArrayLike]],
    xs: Sequence[ArrayLike],
    **kwargs: object,
) -> tuple[Variable, tuple[Variable, ...]]:
    """``n_step_gru`` in both directions; the outputs of both side by side.

    Weights and states alternate: layer 0 forward, layer 0 backward, layer 1 forward, …

    Shapes:
        hx: (2 layers, B, N)
        ws: as for ``n_step_gru``, with I = 2 N after the first layer
        return: (2 layers, B, N), (B_t, 2 N) for each step
    """
    parse_kwargs(kwargs, **old_keywords("n_step_bigru"))
    args = ((hx,), ws, bs, xs, True)
    (hy,), ys = run_layers(
        "n_step_bigru", 6, _gru_layer, n_layers, dropout_ratio, *args
    )
    return hy, ys


def _gru_layer(
    w: Sequence[Any], b: Sequence[Any], x: Any, h: Any, *options: Any
) -> tuple[Any, ...]:
    ops = _core.ops
    from_x, from_h = ops.concat(list(w[:3]), 0), ops.concat(list(w[3:]), 0)
    bias_x, bias_h = ops.concat(list(b[:3]), 0), ops.concat(list(b[3:]), 0)
    return ops.gru_layer(ops.linear(x, from_x, bias_x), h, from_h, bias_h, *options)


def n_step_lstm(
    n_layers: int,
    dropout_ratio: float,
    hx: ArrayLike,
    cx: ArrayLike,
    ws: Sequence[Sequence[ArrayLike]],
    bs: Sequence[Sequence[ArrayLike]],
    xs: Sequence[ArrayLike],
    **kwargs: object,
) -> tuple[Variable, Variable, tuple[Variable, ...]]:
    """The last outputs, the last cells, and the outputs of every step.

    Step t has the B_t sequences longer than t, sorted by length, longest first. Each
    layer has eight weights, four for its input x and four for its last output h, and as
    many biases, for the gates i and f, the candidate a and the gate o: ``c = f c + i
    a`` and ``h = o tanh(c)``. Between layers there is dropout.

    Shapes:
        hx, cx: (layers, B, N)
        ws: (N, I) four times and (N, N) four times, per layer; I = N after the first
        bs: (N,) eight times per layer
        xs: (B_t, I)
        return: (layers, B, N), (layers, B, N), (B_t, N) for each step

    Raises:
        InvalidType: shapes or dtypes do not fit.

    Source: Hochreiter and Schmidhuber, Long short-term memory, 1997.
    """
    parse_kwargs(kwargs, **old_keywords("n_step_lstm"))
    args = ((hx, cx), ws, bs, xs, False)
    (hy, cy), ys = run_layers(
        "n_step_lstm", 8, _lstm_layer, n_layers, dropout_ratio, *args
    )
    return hy, cy, ys


def n_step_bilstm(
    n_layers: int,
    dropout_ratio: float,
    hx: ArrayLike,
    cx: ArrayLike,
    ws: Sequence[Sequence[ArrayLike]],
    bs: Sequence[Sequence[ArrayLike]],
    xs: Sequence[ArrayLike],
    **kwargs: object,
) -> tuple[Variable, Variable, tuple[Variable, ...]]:
    """``n_step_lstm`` in both directions; the outputs of both side by side.

    Weights and states alternate: layer 0 forward, layer 0 backward, layer 1 forward, …

    Shapes:
        hx, cx: (2 layers, B, N)
        ws: as for ``n_step_lstm``, with I = 2 N after the first layer
        return: (2 layers, B, N), (2 layers, B, N), (B_t, 2 N) for each step
    """
    parse_kwargs(kwargs, **old_keywords("n_step_bilstm"))
    args = ((hx, cx), ws, bs, xs, True)
    (hy, cy), ys = run_layers(
        "n_step_bilstm", 8, _lstm_layer, n_layers, dropout_ratio, *args
    )
    return hy, cy, ys


def _lstm_layer(
    w: Sequence[Any], b: Sequence[Any], x: Any, h: Any, c: Any, *options: Any
) -> tuple[Any, ...]:
    ops = _core.ops
    bias = ops.add(_in_order(b[:4]), _in_order(b[4:]))
    gate_inputs = ops.linear(x, _in_order(w[:4]), bias)
    return ops.lstm_layer(gate_inputs, h, c, _in_order(w[4:]), *options)


def _in_order(gates: Sequence[Any]) -> Variable:
    """Weights of i, f, a and o as the core takes them: a, i, f, o."""
    i, f, a, o = gates
    return _core.ops.concat([a, i, f, o], 0)
