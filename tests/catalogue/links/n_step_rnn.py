"""Stacks of recurrent layers over sequences, one step after the other."""

from __future__ import annotations

import numpy

import renga.links as L

from .row import Case, link

rng = numpy.random.default_rng(0)
XS = tuple(rng.normal(size=(n, 3)) for n in (2, 4, 3))


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def tanh_step(z, h):
    return numpy.tanh(z[0] + z[1]), None


def relu_step(z, h):
    return numpy.maximum(z[0] + z[1], 0), None


def gru_step(z, h):
    r, u = sigmoid(z[0] + z[3]), sigmoid(z[1] + z[4])
    return (1 - u) * numpy.tanh(z[2] + r * z[5]) + u * h[0], None


def lstm_step(z, h):
    i, f, a, o = (z[k] + z[k + 4] for k in range(4))
    c = sigmoid(f) * h[1] + sigmoid(i) * numpy.tanh(a)
    return sigmoid(o) * numpy.tanh(c), c


def stack(p, step, n_layers, directions, states, xs):
    """Each sequence separately: last states, last cells and outputs."""
    n_weights = sum(path.startswith("/0/w") for path in p)
    last = numpy.zeros((2, n_layers * directions, len(xs), 2))
    ys = []
    for k, x in enumerate(xs):
        for layer in range(n_layers):
            outputs = []
            for direction in range(directions):
                index = layer * directions + direction
                h, c = (None if s is None else s[index, k] for s in states)
                sequence = []
                for row in x[::-1] if direction else x:
                    z = [
                        (row if 2 * j < n_weights else h) @ p[f"/{index}/w{j}"].T
                        + p[f"/{index}/b{j}"]
                        for j in range(n_weights)
                    ]
                    h, c = step(z, (h, c))
                    sequence.append(h)
                last[:, index, k] = h, h * 0 if c is None else c
                outputs.append(sequence[::-1] if direction else sequence)
            x = numpy.concatenate(outputs, 1)
        ys.append(x)
    return last[0], last[1], ys


KINDS = {
    "NStepRNNTanh": (tanh_step, 1),
    "NStepBiRNNTanh": (tanh_step, 2),
    "NStepRNNReLU": (relu_step, 1),
    "NStepBiRNNReLU": (relu_step, 2),
    "NStepGRU": (gru_step, 1),
    "NStepBiGRU": (gru_step, 2),
    "NStepLSTM": (lstm_step, 1),
    "NStepBiLSTM": (lstm_step, 2),
}


def flattened(outputs):
    *states, ys = outputs
    return *states, *ys


def case(name, given):
    step, directions = KINDS[name]
    n_cells = 2 if "LSTM" in name else 1
    shape = (2 * directions, len(XS), 2)
    states = [rng.normal(size=shape) for _ in range(n_cells)] if given else []

    def reference(p, *inputs):
        xs, hs = inputs[: len(XS)], inputs[len(XS) :] or numpy.zeros((n_cells, *shape))
        hs = [*hs, None][:2]
        h, c, ys = stack(p, step, 2, directions, hs, xs)
        return flattened((h, c, ys) if n_cells == 2 else (h, ys))

    def call(link, *inputs):
        hs = inputs[len(XS) :] or [None] * n_cells
        return flattened(link(*hs, list(inputs[: len(XS)])))

    return Case(lambda: getattr(L, name)(2, 3, 2, 0.0), (*XS, *states), reference, call)


def cases(name):
    return {"": case(name, given=False), "with states": case(name, given=True)}


link(
    "NStepBiGRU",
    cases=cases("NStepBiGRU"),
    nothing=[(4, 2, 2), (0, 4), (2, 4)],
    created="L.NStepBiGRU(2, 3, 2, 0.0)",
    edges="run(L.NStepBiGRU(2, 3, 2, 0.), None, [s(N, 3), s(2, 3)])",
    errors="L.NStepBiGRU(0, 3, 4, 0.) -> ValueError",
    onnx="exported",
)


link(
    "NStepBiLSTM",
    cases=cases("NStepBiLSTM"),
    nothing=[(4, 2, 2), (4, 2, 2), (0, 4), (2, 4)],
    created="L.NStepBiLSTM(2, 3, 2, 0.0)",
    edges="run(L.NStepBiLSTM(2, 3, 2, 0.), None, None, [s(N, 3), s(2, 3)])",
    errors="L.NStepBiLSTM(0, 3, 4, 0.) -> ValueError",
    onnx="exported",
)


link(
    "NStepBiRNNReLU",
    cases=cases("NStepBiRNNReLU"),
    nothing=[(4, 2, 2), (0, 4), (2, 4)],
    created="L.NStepBiRNNReLU(2, 3, 2, 0.0)",
    edges="run(L.NStepBiRNNReLU(2, 3, 2, 0.), None, [s(N, 3), s(2, 3)])",
    errors="L.NStepBiRNNReLU(0, 3, 4, 0.) -> ValueError",
    onnx="exported",
)


link(
    "NStepBiRNNTanh",
    cases=cases("NStepBiRNNTanh"),
    nothing=[(4, 2, 2), (0, 4), (2, 4)],
    created="L.NStepBiRNNTanh(2, 3, 2, 0.0)",
    edges="run(L.NStepBiRNNTanh(2, 3, 2, 0.), None, [s(N, 3), s(2, 3)])",
    errors="L.NStepBiRNNTanh(0, 3, 4, 0.) -> ValueError",
    onnx="exported",
)


link(
    "NStepGRU",
    cases=cases("NStepGRU"),
    nothing=[(2, 2, 2), (0, 2), (2, 2)],
    created="L.NStepGRU(2, 3, 2, 0.0)",
    edges="run(L.NStepGRU(2, 3, 2, 0.), None, [s(N, 3), s(2, 3)])",
    errors="L.NStepGRU(0, 3, 4, 0.) -> ValueError",
    onnx="exported",
)


link(
    "NStepLSTM",
    cases=cases("NStepLSTM"),
    nothing=[(2, 2, 2), (2, 2, 2), (0, 2), (2, 2)],
    created="L.NStepLSTM(2, 3, 2, 0.0)",
    edges=[
        "run(L.NStepLSTM(2, 3, 2, 0.), None, None, [s(N, 3), s(2, 3)])",
        "run(L.NStepLSTM(2, 3, 2, 0.), None, None, [s(N, 3), s(N, 3)])",
    ],
    errors=[
        "L.NStepLSTM(0, 3, 4, 0.) -> ValueError",
        "L.NStepLSTM(-1, 3, 4, 0.) -> ValueError",
        "L.NStepLSTM(1, -3, 4, 0.) -> ValueError",
        "L.NStepLSTM(1, 3, -4, 0.) -> ValueError",
        "L.NStepLSTM(1.5, 3, 4, 0.) -> TypeError",
        "L.NStepLSTM(1, 3, 4, 2.) -> NStepLSTM",
        "L.NStepLSTM(1, 3, 2**62, 0.) -> MemoryError",
    ],
    onnx="exported",
)


link(
    "NStepRNNReLU",
    cases=cases("NStepRNNReLU"),
    nothing=[(2, 2, 2), (0, 2), (2, 2)],
    created="L.NStepRNNReLU(2, 3, 2, 0.0)",
    edges="run(L.NStepRNNReLU(2, 3, 2, 0.), None, [s(N, 3), s(2, 3)])",
    errors="L.NStepRNNReLU(0, 3, 4, 0.) -> ValueError",
    onnx="exported",
)


link(
    "NStepRNNTanh",
    cases=cases("NStepRNNTanh"),
    nothing=[(2, 2, 2), (0, 2), (2, 2)],
    created="L.NStepRNNTanh(2, 3, 2, 0.0)",
    edges="run(L.NStepRNNTanh(2, 3, 2, 0.), None, [s(N, 3), s(2, 3)])",
    errors="L.NStepRNNTanh(0, 3, 4, 0.) -> ValueError",
    onnx="exported",
)
