"""Plain recurrent networks over sequences, in layers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.rnn.layers import Layer, run_layers
from renga.functions.rnn.weights import check_kwargs, check_weights


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
    check_kwargs("n_step_rnn", kwargs)
    args = (n_layers, dropout_ratio, hx, ws, bs, xs, activation, False)
    return _run("n_step_rnn", *args)


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
    check_kwargs("n_step_birnn", kwargs)
    args = (n_layers, dropout_ratio, hx, ws, bs, xs, activation, True)
    return _run("n_step_birnn", *args)


def _run(
    name: str,
    n_layers: int,
    ratio: float,
    hx: Any,
    ws: Any,
    bs: Any,
    xs: Any,
    activation: str,
    bidirectional: bool,
) -> tuple[Variable, tuple[Variable, ...]]:
    if activation not in ("tanh", "relu"):
        raise ValueError(f"{name}: expected 'tanh' or 'relu', got {activation!r}")
    check_weights(name, 2, (hx,), ws, bs, xs, bidirectional)
    layers: list[Layer] = [
        functools.partial(_layer, activation, w, b) for w, b in zip(ws, bs)
    ]
    (hy,), ys = run_layers(name, n_layers, ratio, (hx,), layers, xs, bidirectional)
    return hy, ys


def _layer(
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
