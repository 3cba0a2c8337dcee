"""Long short-term memory over sequences, in layers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.rnn.layers import Layer, run_layers
from renga.functions.rnn.weights import check_kwargs, check_weights


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
    check_kwargs("n_step_lstm", kwargs)
    return _run("n_step_lstm", n_layers, dropout_ratio, hx, cx, ws, bs, xs, False)


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
    check_kwargs("n_step_bilstm", kwargs)
    return _run("n_step_bilstm", n_layers, dropout_ratio, hx, cx, ws, bs, xs, True)


def _run(
    name: str,
    n_layers: int,
    ratio: float,
    hx: Any,
    cx: Any,
    ws: Any,
    bs: Any,
    xs: Any,
    bidirectional: bool,
) -> tuple[Variable, Variable, tuple[Variable, ...]]:
    check_weights(name, 8, (hx, cx), ws, bs, xs, bidirectional)
    layers: list[Layer] = [functools.partial(_layer, w, b) for w, b in zip(ws, bs)]
    (hy, cy), ys = run_layers(
        name, n_layers, ratio, (hx, cx), layers, xs, bidirectional
    )
    return hy, cy, ys


def _layer(
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
