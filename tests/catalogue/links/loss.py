"""Losses of sampled words and of label sequences, as sums over all of them."""

from __future__ import annotations

import itertools

import numpy

import renga.functions as F
import renga.links as L

from .row import Case, link

rng = numpy.random.default_rng(0)
X = rng.normal(size=(4, 3))
T = numpy.array([0, 2, 1, 4], "i")
SAMPLES = rng.integers(0, 5, size=(4, 2)).astype("i")
COUNTS = [5, 1, 3, 2, 4]


class Fixed:
    """A deterministic sampler; the first column is replaced by the words."""

    def sample(self, shape):
        assert shape == (4, 3)
        return numpy.hstack([T[:, None], SAMPLES])


def negative_sampling():
    link = L.NegativeSampling(3, COUNTS, 2)
    link.sampler = Fixed()
    return link


def negative_losses(p, x, t):
    W = p["/W"]
    right = numpy.einsum("ni,ni->n", x, W[t])
    wrong = numpy.einsum("ni,nsi->ns", x, W[SAMPLES])
    losses = numpy.log1p(numpy.exp(-right)) + numpy.log1p(numpy.exp(wrong)).sum(1)
    return numpy.where(t == -1, 0, losses)


def black_out():
    link = L.BlackOut(3, COUNTS, 2)
    link.sample_data = SAMPLES
    return link


def black_out_loss(p, x, t):
    W = p["/W"]
    right = numpy.exp(numpy.einsum("ni,ni->n", x, W[t]))
    wrong = numpy.exp(numpy.einsum("ni,nsi->ns", x, W[SAMPLES]))
    total = right + wrong.sum(1)
    ways = numpy.log(right / total) + numpy.log(1 - wrong / total[:, None]).sum(1)
    return -ways.mean()


# Two sequences, of three steps and of two: the longer first.
SEQUENCES = rng.normal(size=(3, 3)), rng.normal(size=(2, 3))
LABELS = numpy.array([0, 2, 1], "i"), numpy.array([1, 1], "i")
STEPS = (
    numpy.stack([SEQUENCES[0][0], SEQUENCES[1][0]]),
    numpy.stack([SEQUENCES[0][1], SEQUENCES[1][1]]),
    SEQUENCES[0][2:],
)


def score(cost, x, y):
    moves = sum(cost[a, b] for a, b in zip(y, y[1:]))
    return moves + sum(row[label] for row, label in zip(x, y))


def scores(cost, x):
    paths = itertools.product(range(3), repeat=len(x))
    return {path: score(cost, x, path) for path in paths}


def crf_losses(p, *_):
    return numpy.array(
        [
            numpy.log(sum(map(numpy.exp, scores(p["/cost"], x).values())))
            - score(p["/cost"], x, y)
            for x, y in zip(SEQUENCES, LABELS)
        ]
    )


def by_steps(link, *xs, **options):
    ys = F.transpose_sequence([y.astype("i") for y in LABELS])
    return link(list(xs), [y.array for y in ys], **options)


def crf():
    return L.CRF1d(3)


WORDS = numpy.array([0, 3, 4, 3], "i")
TREE = ((0, 1), ((2, 3), 4))
# The pairs from the root on, and whether the path goes left: TREE by hand.
PATHS = {0: "0+ 1+", 1: "0+ 1-", 2: "0- 2+ 3+", 3: "0- 2+ 3-", 4: "0- 2-"}


def probability(W, x, word):
    value = 1.0
    for step in PATHS[word].split():
        sign = 1 if step[1] == "+" else -1
        value /= 1 + numpy.exp(-sign * (W[int(step[0])] @ x))
    return value


def loss(p, x, t):
    return -sum(numpy.log(probability(p["/W"], row, word)) for row, word in zip(x, t))


link(
    "NegativeSampling",
    cases={
        "": Case(
            negative_sampling, (X, T), lambda p, *xs: negative_losses(p, *xs).sum()
        ),
        "of each": Case(
            negative_sampling,
            (X, numpy.array([0, -1, 1, 4], "i")),
            negative_losses,
            call=lambda link, x, t: link(x, t, reduce="no"),
        ),
    },
    draws=True,
    created="L.NegativeSampling(3, (2, 1, 3, 4), 2)",
    edges="run(L.NegativeSampling(3, [2, 1, 3, 4], 2), s(N, 3), i(4, N))",
    errors=[
        "L.NegativeSampling(-3, [1, 2, 3], 2) -> ValueError",
        "L.NegativeSampling(3, [1, 2, 3], -2) -> ValueError",
        "L.NegativeSampling(3, [1, 2, 3], 0) -> ValueError",
    ],
    onnx="exported",
)


link(
    "BlackOut",
    cases=Case(black_out, (X, T), black_out_loss),
    nothing=[()],
    draws=True,
    edges="run(L.BlackOut(3, [1, 2, 3], 2), s(N, 3), i(3, N))",
    errors=[
        "L.BlackOut(-3, [1, 2, 3], 2) -> ValueError",
        "L.BlackOut(3, [1, 2, 3], -2) -> ValueError",
    ],
    onnx="reads values",
)


link(
    "CRF1d",
    cases={
        "": Case(crf, STEPS, lambda p, *xs: crf_losses(p).mean(), call=by_steps),
        "of each": Case(
            crf,
            STEPS,
            crf_losses,
            call=lambda link, *xs: by_steps(link, *xs, reduce="no"),
        ),
        "of transposed sequences": Case(
            crf,
            SEQUENCES,
            lambda p, *xs: crf_losses(p).mean(),
            call=lambda link, *xs: link(list(xs), list(LABELS), transpose=True),
        ),
    },
    nothing=[()],
    created="L.CRF1d(3)",
    edges="run(L.CRF1d(3), [s(N, 3), s(N, 3)], [i(3, N), i(3, N)])",
    errors="L.CRF1d(-3) -> ValueError",
    onnx="exported",
)


link(
    "BinaryHierarchicalSoftmax",
    cases=Case(lambda: L.BinaryHierarchicalSoftmax(3, TREE), (X, WORDS), loss),
    edges="run(L.BinaryHierarchicalSoftmax(3, ((0, 1), (2, 3))), s(N, 3), i(4, N))",
    errors=[
        "L.BinaryHierarchicalSoftmax(-3, ((0, 1), 2)) -> ValueError",
        "L.BinaryHierarchicalSoftmax(3, ((0, 1, 2), 3)) -> ValueError",
    ],
    onnx="exported",
)
