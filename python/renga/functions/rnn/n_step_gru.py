"""Gated recurrent units over sequences, in layers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.rnn.layers import Layer, run_layers
from renga.functions.rnn.weights import check_kwargs, check_weights


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
    check_kwargs("n_step_gru", kwargs)
    return _run("n_step_gru", n_layers, dropout_ratio, hx, ws, bs, xs, False)


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
    check_kwargs("n_step_bigru", kwargs)
    return _run("n_step_bigru", n_layers, dropout_ratio, hx, ws, bs, xs, True)


def _run(
    name: str,
    n_layers: int,
    ratio: float,
    hx: Any,
    ws: Any,
    bs: Any,
    xs: Any,
    bidirectional: bool,
) -> tuple[Variable, tuple[Variable, ...]]:
    check_weights(name, 6, (hx,), ws, bs, xs, bidirectional)
    layers: list[Layer] = [functools.partial(_layer, w, b) for w, b in zip(ws, bs)]
    (hy,), ys = run_layers(name, n_layers, ratio, (hx,), layers, xs, bidirectional)
    return hy, ys


def _layer(
    w: Sequence[Any], b: Sequence[Any], x: Any, h: Any, *options: Any
) -> tuple[Any, ...]:
    ops = _core.ops
    from_x, from_h = ops.concat(list(w[:3]), 0), ops.concat(list(w[3:]), 0)
    bias_x, bias_h = ops.concat(list(b[:3]), 0), ops.concat(list(b[3:]), 0)
    return ops.gru_layer(ops.linear(x, from_x, bias_x), h, from_h, bias_h, *options)
