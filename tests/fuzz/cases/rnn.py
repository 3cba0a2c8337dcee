"""Recurrent cells and layers."""

import numpy as np

from ..draw import Draw
from ..table import call, case
from . import oracles


def cell(g: Draw, children=1):
    """Cells and the inputs of their gates."""
    n, c, rest = g.extent(), g.extent(1), g.shape(0, 1)
    return n, c, rest


def lstm(g: Draw):
    n, c, rest = cell(g)
    return call(g.x(n + g.integer(0, 2), c, *rest), g.x(n, 4 * c, *rest))


case("lstm ops.lstm", lstm, oracles.lstm, weight=2)
case("slstm", lambda g: (lambda n, c, r: call(g.x(n, c, *r), g.x(n, c, *r), g.x(n, 4 * c, *r), g.x(n, 4 * c, *r)))(*cell(g)), within=10)  # sums that cancel


def tree(g: Draw):
    n, c, children = g.extent(), g.extent(1), g.integer(1, 3)
    return call(*(g.x(n, c) for _ in range(children)), g.x(n, (3 + children) * c))


case("tree_lstm", tree)


def lengths_of(g: Draw):
    return sorted((g.integer(0, 4) for _ in range(g.integer(1, 4))), reverse=True)


def layer(states, gates, bias=False):
    """A core's layer: the inputs of all steps, the states and the weights."""

    def draw(g: Draw):
        lengths, n = lengths_of(g), g.integer(1, 5)
        batch = lengths[0] + g.integer(0, 1)
        x = g.x(sum(lengths), gates * n)
        more = (g.x(gates * n),) if bias else ()
        return call(x, *(g.x(batch, n) for _ in range(states)), g.x(gates * n, n), *more, lengths, g.chance(0.5))

    return draw


case("ops.lstm_layer", layer(2, 4))
case("ops.gru_layer", layer(1, 3, True))
case("ops.rnn_layer", layer(1, 1))


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
            ws.append([g.x(units, width) for _ in range(half)] + [g.x(units, units) for _ in range(half)])
            bs.append([g.x(units) for _ in range(weights)])
        first = [g.x(layers * ways, steps[0], units) for _ in range(states)]
        xs = [g.x(n, inputs) for n in steps]
        return call(layers, 0.0, *first, ws, bs, xs)

    return draw


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


for both, way in ((False, ""), (True, "bi")):
    few = {"weight": 0.5, "within": 2}
    case(f"n_step_{way}lstm", network(2, 8, both), **few)
    case(f"n_step_{way}gru", network(1, 6, both), **few)
    case(f"n_step_{way}rnn", network(1, 2, both), None if both else rnn, **few)
