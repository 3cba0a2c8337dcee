"""Recurrent layers against loops in NumPy over one sequence after the other."""

import numpy
import pytest
from scipy.special import expit

import renga
import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
LENGTHS = (3, 2, 2, 1)  # sequences going on at each step: of 4, 3 and 1 steps
LAYERS, SIZE, UNITS = 2, 2, 3


def lstm(w, b, x, h, c):
    i, f, a, o = (w[k] @ x + w[k + 4] @ h + b[k] + b[k + 4] for k in range(4))
    c = expit(f) * c + expit(i) * numpy.tanh(a)
    return expit(o) * numpy.tanh(c), c


def gru(w, b, x, h):
    r, z = (expit(w[k] @ x + w[k + 3] @ h + b[k] + b[k + 3]) for k in range(2))
    a = numpy.tanh(w[2] @ x + b[2] + r * (w[5] @ h + b[5]))
    return ((1 - z) * a + z * h,)


def plain(w, b, x, h):
    return (numpy.tanh(w[0] @ x + w[1] @ h + b[0] + b[1]),)


def rectified(w, b, x, h):
    return (numpy.maximum(w[0] @ x + w[1] @ h + b[0] + b[1], 0),)


# Name, cell, weights per layer, states, keywords.
KINDS = [
    ("lstm", lstm, 8, 2, {}),
    ("gru", gru, 6, 1, {}),
    ("rnn", plain, 2, 1, {}),
    ("rnn", rectified, 2, 1, {"activation": "relu"}),
]


def one_sequence(cell, ws, bs, states, xs, directions):
    """Last states (S, N each) and outputs of each step for a list of steps."""
    last = []
    for layer in range(LAYERS):
        outputs = []
        for direction in range(directions):
            k = layer * directions + direction
            state = tuple(s[k] for s in states)
            ys = []
            for x in xs[::-1] if direction else xs:
                state = cell(ws[k], bs[k], x, *state)
                ys.append(state[0])
            last.append(state)
            outputs.append(ys[::-1] if direction else ys)
        xs = [numpy.concatenate(parts) for parts in zip(*outputs)]
    return last, xs


def reference(cell, n, n_states, directions):
    def compute(*arrays):
        states, ws, bs, xs = parts(arrays, n, n_states, directions)
        last = [numpy.array(s) for s in states]
        outputs = [[] for _ in xs]
        for b in range(LENGTHS[0]):
            sequence = [x[b] for x in xs if b < len(x)]
            start = [s[:, b] for s in states]
            end, ys = one_sequence(cell, ws, bs, start, sequence, directions)
            for s, group in zip(last, zip(*end)):
                s[:, b] = group
            for t, y in enumerate(ys):
                outputs[t].append(y)
        return (*last, *map(numpy.array, outputs))

    return compute


def parts(arrays, n, n_states, directions):
    """States, weights and biases by layer, and inputs."""
    count = LAYERS * directions
    rest = arrays[n_states:]
    ws = [rest[n * k : n * (k + 1)] for k in range(count)]
    bs = [rest[n * (count + k) : n * (count + k + 1)] for k in range(count)]
    return arrays[:n_states], ws, bs, rest[2 * n * count :]


def arrays(n, n_states, directions):
    shapes = [(LAYERS * directions, LENGTHS[0], UNITS)] * n_states
    for k in range(LAYERS * directions):
        size = SIZE if k < directions else UNITS * directions
        shapes += [(UNITS, size)] * (n // 2) + [(UNITS, UNITS)] * (n // 2)
    shapes += [(UNITS,)] * (n * LAYERS * directions)
    shapes += [(length, SIZE) for length in LENGTHS]
    return [rng.normal(size=shape) / 2 for shape in shapes]


@pytest.mark.parametrize(("name", "cell", "n", "n_states", "options"), KINDS)
@pytest.mark.parametrize("directions", [1, 2])
def test_layers(name, cell, n, n_states, options, directions):
    function = getattr(F, f"n_step_{'bi' if directions == 2 else ''}{name}")

    def call(*arrays):
        states, ws, bs, xs = parts(arrays, n, n_states, directions)
        *last, ys = function(LAYERS, 0.5, *states, ws, bs, xs, **options)
        assert isinstance(ys, tuple)
        return (*last, *ys)

    with renga.using_config("train", False):
        check(
            call,
            reference(cell, n, n_states, directions),
            *arrays(n, n_states, directions),
        )


def test_dropout_is_between_layers_only():
    hx, w1, w2, w3, w4, *rest = arrays(2, 1, 1)
    bs, xs = rest[:4], rest[4:]
    args = (hx, [(w1, w2), (w3, w4)], [bs[:2], bs[2:]], xs)
    numpy.random.seed(0)
    hy, _ = F.n_step_rnn(LAYERS, 0.99, *args)
    with renga.using_config("train", False):
        expected, _ = F.n_step_rnn(LAYERS, 0.99, *args)
    numpy.testing.assert_array_equal(hy.array[0], expected.array[0])
    assert abs(hy.array[1] - expected.array[1]).max() > 1e-2


hx = numpy.zeros((1, 2, 3))
w, b, x = (
    [[numpy.zeros((3, 2)), numpy.zeros((3, 3))]],
    [[numpy.zeros(3)] * 2],
    [hx[0, :, :2]],
)
FAULTS = [
    (lambda: F.n_step_rnn(1, 0, hx, w, b, x, "sigmoid"), ValueError),
    (lambda: F.n_step_rnn(1, 0, hx, w, b, x, train=True), ValueError),
    (lambda: F.n_step_rnn(1, 0, hx, w, b, x, other=True), TypeError),
    (lambda: F.n_step_rnn(1, 0, hx, w, b, [x[0].astype("f")]), InvalidType),
    (lambda: F.n_step_rnn(1, 0, hx, [w[0][::-1]], b, x), InvalidType),
    (lambda: F.n_step_rnn(1, 0, hx[:, :1], w, b, x), InvalidType),
    (lambda: F.n_step_rnn(1, 0, hx, w, b, [x[0][:1], *x]), ValueError),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()
