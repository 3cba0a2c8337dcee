"""Cells and layers of recurrent networks."""

from __future__ import annotations

import numpy as np
import scipy.special as sp

import renga.functions as F
from tests.fuzz import oracles
from tests.fuzz.draw import Draw
from tests.fuzz.table import call

from . import speed
from .row import case, drawn, function


def lstm_cell(c, a, i, f, o):
    c = np.tanh(a) * sp.expit(i) + c * sp.expit(f)
    return c, np.tanh(c) * sp.expit(o)


def alternating_lstm(c, x):
    new, h = lstm_cell(c[: len(x)], *(x[:, k::4] for k in range(4)))
    return [np.concatenate([new, c[len(x) :]]), h]


def cell(g: Draw, children=1):
    """Cells and the inputs of their gates."""
    n, c, rest = g.extent(), g.extent(1), g.shape(0, 1)
    return n, c, rest


def lstm(g: Draw):
    n, c, rest = cell(g)
    return call(g.x(n + g.integer(0, 2), c, *rest), g.x(n, 4 * c, *rest))


function(
    "lstm",
    cases=[
        *[
            case(lambda o, c, x: list(o.lstm(c, x)), alternating_lstm, c, x)
            for c, x in (
                ((3, 5), (3, 20)),
                ((3, 2), (1, 8)),
                ((2, 3, 37), (2, 12, 37)),
                ((2, 150), (2, 600)),
                ((0, 2), (0, 8)),
                ((2, 3), (0, 12)),
            )
        ],
        *[
            case(
                lambda o, c, x, h: list(o.lstm(c, x, h)),
                lambda c, x, h: alternating_lstm(c, x + h),
                c,
                x,
                x,
            )
            for c, x in (
                ((3, 2), (1, 8)),
                ((2, 3, 2), (2, 12, 2)),
                ((2, 75), (2, 300)),
                ((2, 3), (0, 12)),
            )
        ],
    ],
    fuzz=drawn(lstm, oracles.lstm, weight=2, of="F ops"),
    signature="(c_prev, x)",
    edges=["F.lstm(s(N, 3), s(N, 12))", "F.lstm(s(2, 3), s(N, 12))"],
    errors=[
        "F.lstm(f(2, 3), f(2, 11)) -> InvalidType",
        "F.lstm(f(2, 3), f(3, 12)) -> InvalidType",
        "F.lstm(f(2, 3), d(2, 12)) -> InvalidType",
        "F.lstm(i(2, 3), i(2, 12)) -> InvalidType",
        "F.lstm(f(2), f(8)) -> IndexError | InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.normal(512, 256), speed.normal(512, 1024)),
)

function(
    "slstm",
    fuzz=[
        # sums that cancel
        drawn(
            lambda g: (
                lambda n, c, r: call(
                    g.x(n, c, *r), g.x(n, c, *r), g.x(n, 4 * c, *r), g.x(n, 4 * c, *r)
                )
            )(*cell(g)),
            within=10,
        )
    ],
    signature="(c_prev1, c_prev2, x1, x2)",
    edges="F.slstm(s(N, 3), s(N, 3), s(N, 12), s(N, 12))",
    errors=[
        "F.slstm(f(2, 3), f(2, 3), f(2, 12), f(2, 11)) -> InvalidType",
        "F.slstm(f(2, 3), f(2, 4), f(2, 12), f(2, 12)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(
        speed.normal(512, 256),
        speed.normal(512, 256),
        speed.normal(512, 1024),
        speed.normal(512, 1024),
    ),
)


def tree(g: Draw):
    n, c, children = g.extent(), g.extent(1), g.integer(1, 3)
    return call(*(g.x(n, c) for _ in range(children)), g.x(n, (3 + children) * c))


function(
    "tree_lstm",
    fuzz=drawn(tree),
    signature="(*inputs)",
    edges="F.tree_lstm(s(N, 3), s(N, 3), s(N, 15))",
    errors=[
        "F.tree_lstm(f(2, 3), f(2, 3), f(2, 14)) -> InvalidType",
        "F.tree_lstm(f(2, 3)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(
        speed.normal(512, 256), speed.normal(512, 256), speed.normal(512, 1280)
    ),
)


def lstm_step(projected, W, h, c):
    return lstm_cell(c, *np.split(projected + h @ W.T, 4, 1))[::-1]


def loop_over_steps(step, n_states, lengths, backwards):
    """A layer as a loop: ``step(projected, *weights, *states)`` returns the next states."""

    def layer(x, *operands):
        states, weights = [s.copy() for s in operands[:n_states]], operands[n_states:]
        parts, ys = np.split(x, np.cumsum(lengths)[:-1]), [None] * len(lengths)
        for t in range(len(lengths))[:: -1 if backwards else 1]:
            n = lengths[t]
            for s, new in zip(
                states, step(parts[t], *weights, *(s[:n] for s in states))
            ):
                s[:n] = new
            ys[t] = states[0][:n].copy()
        return [np.concatenate(ys), *states]

    return layer


def lengths_of(g: Draw):
    return sorted((g.integer(0, 4) for _ in range(g.integer(1, 4))), reverse=True)


def layer(states, gates, bias=False):
    """A core's layer: the inputs of all steps, the states and the weights."""

    def draw(g: Draw):
        lengths, n = lengths_of(g), g.integer(1, 5)
        batch = lengths[0] + g.integer(0, 1)
        x = g.x(sum(lengths), gates * n)
        more = (g.x(gates * n),) if bias else ()
        return call(
            x,
            *(g.x(batch, n) for _ in range(states)),
            g.x(gates * n, n),
            *more,
            lengths,
            g.chance(0.5),
        )

    return draw


function(
    "lstm_layer",
    cases=[
        case(
            lambda o, x, h, c, W, t=lengths, r=back: list(
                o.lstm_layer(x, h, c, W, t, r)
            ),
            lambda x, h, c, W, t=lengths, r=back: loop_over_steps(lstm_step, 2, t, r)(
                x, h, c, W
            ),
            (rows, 4 * n),
            (4, n),
            (4, n),
            (4 * n, n),
        )
        for lengths, units in (((3, 2, 2, 1), 3), ((2, 1), 21), ((2, 0), 3), ((0,), 3))
        for back in (False, True)
        for rows, n in [(sum(lengths), units)]
    ],
    fuzz=drawn(layer(2, 4), of="ops"),
)


def gru_step(projected, W, b, h):
    x, y = np.split(projected, 3, 1), np.split(h @ W.T + b, 3, 1)
    r, z = sp.expit(x[0] + y[0]), sp.expit(x[1] + y[1])
    a = np.tanh(x[2] + r * y[2])
    return ((1 - z) * a + z * h,)


function(
    "gru_layer",
    cases=[
        case(
            lambda o, x, h, W, b, t=lengths, r=back: list(
                o.gru_layer(x, h, W, b, t, r)
            ),
            lambda x, h, W, b, t=lengths, r=back: loop_over_steps(gru_step, 1, t, r)(
                x, h, W, b
            ),
            (rows, 3 * n),
            (4, n),
            (3 * n, n),
            (3 * n,),
        )
        for lengths, units in (((3, 2, 2, 1), 3), ((2, 1), 21), ((2, 0), 3), ((0,), 3))
        for back in (False, True)
        for rows, n in [(sum(lengths), units)]
    ],
    fuzz=drawn(layer(1, 3, True), of="ops"),
)

function(
    "rnn_layer",
    cases=[
        case(
            lambda o, x, h, W, t=lengths, r=back, a=name: list(
                o.rnn_layer(x, h, W, t, r, a)
            ),
            lambda x, h, W, t=lengths, r=back, f=f: loop_over_steps(
                lambda s, W, h: (f(s + h @ W.T),), 1, t, r
            )(x, h, W),
            (rows, n),
            (4, n),
            (n, n),
        )
        for lengths, units in (((3, 2, 2, 1), 3), ((2, 1), 21), ((2, 0), 3), ((0,), 3))
        for back in (False, True)
        for rows, n in [(sum(lengths), units)]
        for name, f in (("tanh", np.tanh), ("relu", lambda x: x.clip(0)))
    ],
    fuzz=drawn(layer(1, 1), of="ops"),
)


def network(states, weights, both):
    """Layers, the states, the weights of every layer, and sequences of all steps."""

    def draw(g: Draw):
        layers, units, inputs = g.integer(1, 2), g.integer(1, 3), g.integer(1, 3)
        ways = 2 if both else 1
        steps = [n for n in lengths_of(g) if n] or [1]
        ws, bs = [], []
        for i in range(layers * ways):
            width = inputs if i < ways else ways * units
            half = weights // 2
            ws.append(
                [g.x(units, width) for _ in range(half)]
                + [g.x(units, units) for _ in range(half)]
            )
            bs.append([g.x(units) for _ in range(weights)])
        first = [g.x(layers * ways, steps[0], units) for _ in range(states)]
        xs = [g.x(n, inputs) for n in steps]
        return call(layers, 0.0, *first, ws, bs, xs)

    return draw


SEQUENCES = [speed.normal(16, 64)] * 16


def recurrent(function, gates, directions, has_cell):
    """One layer of a recurrent network, in one or in both directions."""
    state = speed.normal(directions, 16, 64)
    layers = [[speed.normal(64, 64, scale=0.1)] * 2 * gates] * directions
    biases = [[speed.normal(64)] * 2 * gates] * directions
    return speed.row(
        state,
        layers,
        biases,
        SEQUENCES,
        flops=2 * gates * directions * 2 * 256 * 64 * 64,
        call=lambda h, ws, bs, xs: function(1, 0.0, h, *[h] * has_cell, ws, bs, xs),
    )


function(
    "n_step_lstm",
    fuzz=drawn(network(2, 8, False), weight=0.5, within=2),
    signature="(n_layers, dropout_ratio, hx, cx, ws, bs, xs, **kwargs)",
    edges=[
        "F.n_step_lstm(1, 0., s(1, N, 3), s(1, N, 3), [[s(3, 2) for _ in range(4)] + [s(3, 3) for _ in range(4)]], [[s(3)] * 8], [s(N, 2), s(N, 2)])",
        "F.n_step_lstm(1, 0., s(1, 2, 3), s(1, 2, 3), [[s(3, 2) for _ in range(4)] + [s(3, 3) for _ in range(4)]], [[s(3)] * 8], [s(2, 2), s(N, 2)])",
    ],
    errors=[
        "F.n_step_lstm(1, 0., f(1, 2, 3), f(1, 2, 3), [[f(3, 3)] * 7], [[f(3)] * 8], [f(2, 3)]) -> IndexError | InvalidType",
        "F.n_step_lstm(1, 0., f(1, 2, 3), f(1, 2, 3), [[f(3, 3)] * 8], [[f(3)] * 8], [d(2, 3)]) -> InvalidType",
        "F.n_step_lstm(1, 0., f(1, 2, 3), f(1, 2, 3), [[f(3, 3)] * 8], [[f(3)] * 8], [f(2, 3)], a=1) -> TypeError",
    ],
    onnx="exported",
    speed=recurrent(F.n_step_lstm, 4, 1, True),
)

function(
    "n_step_gru",
    fuzz=drawn(network(1, 6, False), weight=0.5, within=2),
    signature="(n_layers, dropout_ratio, hx, ws, bs, xs, **kwargs)",
    edges="F.n_step_gru(1, 0., s(1, N, 3), [[s(3, 2) for _ in range(3)] + [s(3, 3) for _ in range(3)]], [[s(3)] * 6], [s(N, 2), s(N, 2)])",
    errors="F.n_step_gru(1, 0., f(1, 2, 3), [[f(3, 2)] * 6], [[f(3)] * 6], [f(2, 3)]) -> InvalidType",
    onnx="exported",
    speed=recurrent(F.n_step_gru, 3, 1, False),
)


def rnn(n_layers, ratio, hx, ws, bs, xs):
    """One direction of plain layers."""
    if ratio:
        raise ValueError("what dropout draws is not known")
    hs, ys = [], xs
    for h, (w0, w1), (b0, b1) in zip(hx, ws, bs):
        h, seen, ys = h.copy(), ys, []
        for x in seen:
            h[: len(x)] = np.tanh(x @ w0.T + b0 + h[: len(x)] @ w1.T + b1)
            ys.append(h[: len(x)].copy())
        hs.append(h)
    return [np.stack(hs), *ys]


function(
    "n_step_rnn",
    fuzz=drawn(network(1, 2, False), rnn, weight=0.5, within=2),
    signature="(n_layers, dropout_ratio, hx, ws, bs, xs, activation='tanh', **kwargs)",
    edges=[
        "F.n_step_rnn(1, 0., s(1, N, 3), [[s(3, 2), s(3, 3)]], [[s(3), s(3)]], [s(N, 2), s(N, 2)])",
        "F.n_step_rnn(1, 0., s(1, N, 3), [[s(3, 2), s(3, 3)]], [[s(3), s(3)]], [s(N, 2), s(N, 2)], activation='relu')",
    ],
    errors="F.n_step_rnn(1, 0., f(1, 2, 3), [[f(3, 3)] * 2], [[f(3)] * 2], [f(2, 3)], 'foo') -> ValueError",
    onnx="exported",
    speed=recurrent(F.n_step_rnn, 1, 1, False),
)

function(
    "n_step_bilstm",
    fuzz=drawn(network(2, 8, True), weight=0.5, within=2),
    signature="(n_layers, dropout_ratio, hx, cx, ws, bs, xs, **kwargs)",
    edges="F.n_step_bilstm(1, 0., s(2, N, 3), s(2, N, 3), [[s(3, 2) for _ in range(4)] + [s(3, 3) for _ in range(4)]] * 2, [[s(3)] * 8] * 2, [s(N, 2), s(N, 2)])",
    onnx="exported",
    speed=recurrent(F.n_step_bilstm, 4, 2, True),
)

function(
    "n_step_bigru",
    fuzz=drawn(network(1, 6, True), weight=0.5, within=2),
    signature="(n_layers, dropout_ratio, hx, ws, bs, xs, **kwargs)",
    edges="F.n_step_bigru(1, 0., s(2, N, 3), [[s(3, 2) for _ in range(3)] + [s(3, 3) for _ in range(3)]] * 2, [[s(3)] * 6] * 2, [s(N, 2), s(N, 2)])",
    onnx="exported",
    speed=recurrent(F.n_step_bigru, 3, 2, False),
)

function(
    "n_step_birnn",
    fuzz=drawn(network(1, 2, True), weight=0.5, within=2),
    signature="(n_layers, dropout_ratio, hx, ws, bs, xs, activation='tanh', **kwargs)",
    edges="F.n_step_birnn(1, 0., s(2, N, 3), [[s(3, 2), s(3, 3)]] * 2, [[s(3), s(3)]] * 2, [s(N, 2), s(N, 2)])",
    onnx="exported",
    speed=recurrent(F.n_step_birnn, 1, 2, False),
)
