"""Losses of sampled words and of label sequences, against sums over all of them."""

import itertools

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from tests.links.cases.link_check import Case, check

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


CASES = {
    "NegativeSampling": Case(
        negative_sampling, (X, T), lambda p, *xs: negative_losses(p, *xs).sum()
    ),
    "NegativeSampling of each": Case(
        negative_sampling,
        (X, numpy.array([0, -1, 1, 4], "i")),
        negative_losses,
        call=lambda link, x, t: link(x, t, reduce="no"),
    ),
    "BlackOut": Case(black_out, (X, T), black_out_loss),
    "CRF1d": Case(crf, STEPS, lambda p, *xs: crf_losses(p).mean(), call=by_steps),
    "CRF1d of each": Case(
        crf,
        STEPS,
        crf_losses,
        call=lambda link, *xs: by_steps(link, *xs, reduce="no"),
    ),
    "CRF1d of transposed sequences": Case(
        crf,
        SEQUENCES,
        lambda p, *xs: crf_losses(p).mean(),
        call=lambda link, *xs: link(list(xs), list(LABELS), transpose=True),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_link(name):
    check(CASES[name])


@pytest.mark.parametrize("transpose", [False, True])
def test_most_likely_labels(transpose):
    cost = rng.normal(size=(3, 3))
    with renga.using_config("dtype", numpy.dtype("d")):
        link = L.CRF1d(3, cost)
    given = SEQUENCES if transpose else STEPS
    found, path = link.argmax(list(given), transpose=transpose)
    if not transpose:
        path = [p.array for p in F.transpose_sequence(path)]
    for value, labels, x in zip(found.array, path, SEQUENCES):
        every = scores(cost, x)
        best = max(every, key=every.get)
        assert tuple(labels) == best
        numpy.testing.assert_allclose(value, every[best])


def test_initial_values():
    assert not L.CRF1d(3).cost.array.any()
    assert (L.CRF1d(3, 2).cost.array == 2).all()
    assert not L.NegativeSampling(3, COUNTS, 2).W.array.any()
    assert L.NegativeSampling(3, COUNTS, 2, dtype="d").W.dtype == numpy.float64
    link = L.BlackOut(3, COUNTS, 2)
    assert link.W.shape == (5, 3) and numpy.isnan(link.W.array).all()


@pytest.mark.parametrize("power", [0, 0.75, 1])
def test_words_are_drawn_by_their_counts(power):
    numpy.random.seed(0)
    link = L.NegativeSampling(3, COUNTS, 2000, power)
    _, samples = link(X.astype("f"), T, return_samples=True)
    assert samples.shape == (4, 2001) and (samples[:, 0] == T).all()
    expected = numpy.array(COUNTS, float) ** power
    shares = numpy.bincount(samples[:, 1:].ravel(), minlength=5) / 8000
    numpy.testing.assert_allclose(shares, expected / expected.sum(), atol=0.02)
    black_out = L.BlackOut(3, COUNTS, 2)
    shares = numpy.bincount(black_out.sampler.sample(8000), minlength=5) / 8000
    numpy.testing.assert_allclose(shares, numpy.array(COUNTS) / 15, atol=0.02)


def test_black_out_draws():
    numpy.random.seed(0)
    link = L.BlackOut(3, COUNTS, 2)
    link.W.array[...] = rng.normal(size=(5, 3))
    assert len({float(link(X.astype("f"), T).array) for _ in range(10)}) > 1


def test_wrong_arguments():
    x = X.astype("f")
    with pytest.raises(TypeError, match="nonsense"):
        negative_sampling()(x, T, nonsense=True)
    with pytest.raises(ValueError, match="reduce|mean"):
        negative_sampling()(x, T, reduce="mean")
    with pytest.raises(ValueError, match="reduce|sum"):
        by_steps(crf(), *(s.astype("f") for s in STEPS), reduce="sum")
