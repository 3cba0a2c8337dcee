"""Recurrent cells, a step at a time."""

from __future__ import annotations

import numpy

import renga
import renga.links as L

from .row import Case, link

rng = numpy.random.default_rng(0)
X = tuple(rng.normal(size=(3, 4, 3)))
SHRINKING = (X[0], X[1][:3], X[2][:1])
C, H, G = rng.normal(size=(3, 4, 2))


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def linear(p, name, x):
    return x @ p[f"/{name}/W"].T + p.get(f"/{name}/b", 0)


def lstm_step(p, c, h, x):
    gates = linear(p, "upward", x) + linear(p, "lateral", h)
    a, i, f, o = (gates[:, k::4] for k in range(4))
    c = numpy.tanh(a) * sigmoid(i) + c * sigmoid(f)
    return c, numpy.tanh(c) * sigmoid(o)


def lstm(p, *xs):
    """The state of finished samples is unchanged."""
    c, h = numpy.zeros((2, len(xs[0]), 2))
    ys = []
    for x in xs:
        n = len(x)
        c_new, y = lstm_step(p, c[:n], h[:n], x)
        c, h = (numpy.concatenate(pair) for pair in ((c_new, c[n:]), (y, h[n:])))
        ys.append(y)
    return *ys, c, h


def peephole(p, *xs):
    c, h = numpy.zeros((2, len(xs[0]), 2))
    ys = []
    for x in xs:
        gates = linear(p, "upward", x) + linear(p, "lateral", h)
        a, i, f, o = (gates[:, k::4] for k in range(4))
        keep, take = sigmoid(f + linear(p, "peep_f", c)), i + linear(p, "peep_i", c)
        c = keep * c + sigmoid(take) * numpy.tanh(a)
        h = sigmoid(o + linear(p, "peep_o", c)) * numpy.tanh(c)
        ys.append(h)
    return ys


def gru_step(p, h, x):
    r = sigmoid(linear(p, "W_r", x) + linear(p, "U_r", h))
    z = sigmoid(linear(p, "W_z", x) + linear(p, "U_z", h))
    return (1 - z) * h + z * numpy.tanh(linear(p, "W", x) + linear(p, "U", r * h))


def gru(p, first, *xs):
    """Before the first step there is no state, nor its layer."""
    h = sigmoid(linear(p, "W_z", first)) * numpy.tanh(linear(p, "W", first))
    ys = [h]
    for x in xs:
        ys.append(gru_step(p, ys[-1], x))
    return ys


def mgu_step(p, h, x):
    f = sigmoid(linear(p, "W_f", numpy.hstack([h, x])))
    return (1 - f) * h + f * numpy.tanh(linear(p, "W_h", numpy.hstack([f * h, x])))


def mgu(p, *xs):
    ys = [numpy.zeros((len(xs[0]), 2))]
    for x in xs:
        ys.append(mgu_step(p, ys[-1], x))
    return ys[1:]


def tree(cs, a, i, o, fs):
    c = numpy.tanh(a) * sigmoid(i) + sum(c * sigmoid(f) for c, f in zip(cs, fs))
    return c, numpy.tanh(c) * sigmoid(o)


def child_sum_tree(p, *inputs):
    *states, x = inputs
    cs, hs = states[: len(states) // 2], states[len(states) // 2 :]
    gates = numpy.split(linear(p, "W_x", x), 4, 1)
    inner = numpy.split(linear(p, "W_h_aio", sum(hs, numpy.zeros((4, 2)))), 3, 1)
    fs = [gates[3] + linear(p, "W_h_f", h) for h in hs]
    return tree(cs, *(g + h for g, h in zip(gates, inner)), fs)


def nary_tree(p, *inputs):
    *states, x = inputs
    n = len(states) // 2
    gates = linear(p, "W_x", x)
    for k, h in enumerate(states[n:], 1):
        gates = gates + linear(p, f"W_h{k}", h)
    a, i, o, *fs = numpy.split(gates, 3 + n, 1)
    return tree(states[:n], a, i, o, fs)


def through(link, *xs):
    link.reset_state()
    return tuple(link(x) for x in xs)


def through_lstm(link, *xs):
    return *through(link, *xs), link.c, link.h


def outside_training(link, *xs):
    with renga.using_config("train", False):
        return through_lstm(link, *xs)


def sequence(cls, reference, lazily=True):
    lazy = (lambda: cls(None, 2)) if lazily else None
    return Case(lambda: cls(3, 2), X, reference, through, lazy)


link(
    "LSTM",
    cases=Case(lambda: L.LSTM(3, 2), SHRINKING, lstm, through_lstm, lambda: L.LSTM(2)),
    created=[
        "L.LSTM(3, 2)",
        "L.LSTM(2)",
    ],
    edges=[
        "steps(L.LSTM(3, 2), s(N, 3), s(N, 3))",
        "steps(L.LSTM(2), s(2, 3), s(N, 3))",
    ],
    errors=[
        "L.LSTM(3, -2) -> ValueError",
        "L.LSTM(-3, 2) -> ValueError",
        "L.LSTM(3, 2**62) -> MemoryError",
        "L.LSTM(0, 2) -> LSTM",
    ],
    onnx="exported",
)


link(
    "StatelessLSTM",
    cases={
        "": Case(
            lambda: L.StatelessLSTM(3, 2),
            (C, H, X[0]),
            lstm_step,
            lazy=lambda: L.StatelessLSTM(None, 2),
        ),
        "with one output for all samples": Case(
            lambda: L.StatelessLSTM(3, 2), (C, H[:1], X[0]), lstm_step
        ),
        "without a state": Case(
            lambda: L.StatelessLSTM(3, 2),
            (X[0],),
            lambda p, x: lstm_step(p, 0 * C, 0 * H, x),
            lambda link, x: link(None, None, x),
            gradients=False,  # no gradient reaches the lateral layer
        ),
    },
    created="L.StatelessLSTM(3, 2)",
    edges=[
        "run(L.StatelessLSTM(3, 2), s(N, 2), s(N, 2), s(N, 3))",
        "run(L.StatelessLSTM(3, 2), None, None, s(N, 3))",
    ],
    errors="L.StatelessLSTM(3, -2) -> ValueError",
    onnx="exported",
)


link(
    "StatefulZoneoutLSTM",
    cases={
        "outside training": Case(
            lambda: L.StatefulZoneoutLSTM(3, 2),
            X,
            lstm,
            outside_training,
            lambda: L.StatefulZoneoutLSTM(None, 2),
        ),
    },
    draws=True,
    created="L.StatefulZoneoutLSTM(3, 2)",
    edges="steps(L.StatefulZoneoutLSTM(3, 2), s(N, 3), s(N, 3))",
    errors="L.StatefulZoneoutLSTM(3, -2) -> ValueError",
    onnx="exported",
)


link(
    "StatefulPeepholeLSTM",
    cases=sequence(L.StatefulPeepholeLSTM, peephole),
    created="L.StatefulPeepholeLSTM(3, 2)",
    edges="steps(L.StatefulPeepholeLSTM(3, 2), s(N, 3), s(N, 3))",
    errors="L.StatefulPeepholeLSTM(3, -2) -> ValueError",
    onnx="exported",
)


link(
    "GRU",
    cases=sequence(L.GRU, gru),
    created="L.GRU(3, 2)",
    edges="steps(L.GRU(3, 2), s(N, 3), s(N, 3))",
    errors="L.GRU(3, -2) -> ValueError",
    onnx="exported",
)


link(
    "StatefulGRU",
    cases=sequence(L.StatefulGRU, gru),
    created="L.StatefulGRU(3, 2)",
    edges="steps(L.StatefulGRU(3, 2), s(N, 3), s(N, 3))",
    errors="L.StatefulGRU(3, -2) -> ValueError",
    onnx="exported",
)


link(
    "StatelessGRU",
    cases=Case(
        lambda: L.StatelessGRU(3, 2),
        (H, X[0]),
        gru_step,
        lazy=lambda: L.StatelessGRU(None, 2),
    ),
    created="L.StatelessGRU(3, 2)",
    edges="run(L.StatelessGRU(3, 2), s(N, 2), s(N, 3))",
    errors="L.StatelessGRU(3, -2) -> ValueError",
    onnx="exported",
)


link(
    "StatefulMGU",
    cases=sequence(L.StatefulMGU, mgu, lazily=False),
    created="L.StatefulMGU(3, 2)",
    edges="steps(L.StatefulMGU(3, 2), s(N, 3), s(N, 3))",
    errors="L.StatefulMGU(3, -2) -> ValueError",
    onnx="exported",
)


link(
    "StatelessMGU",
    cases=Case(lambda: L.StatelessMGU(3, 2), (H, X[0]), mgu_step),
    created="L.StatelessMGU(3, 2)",
    edges="run(L.StatelessMGU(3, 2), s(N, 2), s(N, 3))",
    errors="L.StatelessMGU(3, -2) -> ValueError",
    onnx="exported",
)


link(
    "ChildSumTreeLSTM",
    cases={
        "": Case(
            lambda: L.ChildSumTreeLSTM(3, 2),
            (C, G, H, H + G, X[0]),
            child_sum_tree,
            lazy=lambda: L.ChildSumTreeLSTM(None, 2),
        ),
        "of a leaf": Case(
            lambda: L.ChildSumTreeLSTM(3, 2), (X[0],), child_sum_tree, gradients=False
        ),
    },
    created="L.ChildSumTreeLSTM(3, 2)",
    edges=[
        "run(L.ChildSumTreeLSTM(3, 2), s(N, 2), s(N, 2), s(N, 2), s(N, 2), s(N, 3))",
        "run(L.ChildSumTreeLSTM(3, 2), s(N, 3))",
    ],
    errors="L.ChildSumTreeLSTM(3, -4) -> ValueError",
    onnx="exported",
)


link(
    "NaryTreeLSTM",
    cases=Case(
        lambda: L.NaryTreeLSTM(3, 2, 3),
        (C, G, H, H, G, C, X[0]),
        nary_tree,
        lazy=lambda: L.NaryTreeLSTM(None, 2, 3),
    ),
    created="L.NaryTreeLSTM(3, 2, 3)",
    edges="run(L.NaryTreeLSTM(3, 2, 2), s(N, 2), s(N, 2), s(N, 2), s(N, 2), s(N, 3))",
    errors=[
        "L.NaryTreeLSTM(3, 4, 0) -> AssertionError",
        "L.NaryTreeLSTM(3, 4, -2) -> AssertionError",
    ],
    onnx="exported",
)
