"""Cells of LSTMs against their equations in NumPy."""

import numpy
import pytest
from scipy.special import expit

import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
c1, c2 = rng.normal(size=(2, 3, 2))
x1, x2 = rng.normal(size=(2, 3, 8))


def cell(c, x):
    a, i, f = (x[:, k::4] for k in range(3))
    return numpy.tanh(a) * expit(i) + expit(f) * c[: len(x)]


def lstm(c, x):
    new = cell(c, x)
    return numpy.concatenate([new, c[len(x) :]]), expit(x[:, 3::4]) * numpy.tanh(new)


def slstm(c1, c2, x1, x2):
    c = cell(c1, x1) + cell(c2, x2)
    return c, expit(x1[:, 3::4] + x2[:, 3::4]) * numpy.tanh(c)


def tree_lstm(*inputs):
    *cells, x = inputs
    a, i, o, *fs = numpy.split(x, 3 + len(cells), 1)
    c = numpy.tanh(a) * expit(i) + sum(expit(f) * c for f, c in zip(fs, cells))
    return c, expit(o) * numpy.tanh(c)


def test_lstm():
    check(F.lstm, lstm, c1, x1)
    check(F.lstm, lstm, c1, x1[:2])
    check(F.lstm, lstm, c1[..., None], x1[..., None])


def test_slstm():
    check(F.slstm, slstm, c1, c2, x1, x2)
    check(F.slstm, slstm, *(v[..., None] for v in (c1, c2, x1, x2)))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_tree_lstm(n):
    check(
        F.tree_lstm,
        tree_lstm,
        *rng.normal(size=(n, 3, 2)),
        rng.normal(size=(3, 6 + 2 * n)),
    )


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: F.lstm(c1, x1[:, :4]),
        lambda: F.lstm(c1[:2], x1),
        lambda: F.lstm(c1.astype("f"), x1),
        lambda: F.slstm(c1, c2[:2], x1, x2),
        lambda: F.slstm(c1, c2, x1, x2[:, :4]),
        lambda: F.slstm(c1[0], c2[0], x1[0], x2[0]),
        lambda: F.tree_lstm(x1),
        lambda: F.tree_lstm(),
        lambda: F.tree_lstm(c1, x1[:, :6]),
        lambda: F.tree_lstm(c1, c2[:2], rng.normal(size=(3, 10))),
    ],
)
def test_faults(wrong):
    with pytest.raises(InvalidType):
        wrong()
