"""Losses of sampled words and of label sequences, against sums over all of them."""

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from tests.catalogue.links.loss import (
    COUNTS,
    SEQUENCES,
    STEPS,
    T,
    X,
    by_steps,
    crf,
    negative_sampling,
    rng,
    scores,
)


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
