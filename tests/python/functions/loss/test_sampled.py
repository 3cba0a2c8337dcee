"""Sampled losses and clustering losses against NumPy."""

import numpy
import pytest
from scipy.special import log_expit, softmax

import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
x, W = rng.normal(size=(3, 4)), rng.normal(size=(5, 4))
t = numpy.array([1, -1, 4], numpy.int32)
drawn = numpy.array([[0, 3], [1, 1], [4, 2]], numpy.int32)


def sampler(shape):
    assert shape == (3, 3)
    return numpy.concatenate([drawn[:, :1], drawn], 1)


@pytest.mark.parametrize("reduce", ["sum", "no"])
def test_negative_sampling(reduce):
    def reference(x, W):
        losses = -log_expit((x * W[t]).sum(1))
        losses -= log_expit(-numpy.einsum("nd,nsd->ns", x, W[drawn])).sum(1)
        losses[1] = 0
        return losses.sum() if reduce == "sum" else losses

    check(
        lambda x, W: F.negative_sampling(x, t, W, sampler, 2, reduce), reference, x, W
    )
    loss, samples = F.negative_sampling(x, t, W, sampler, 2, return_samples=True)
    numpy.testing.assert_array_equal(samples, numpy.c_[t, drawn])
    assert loss.array == F.negative_sampling(x, t, W, sampler, 2).array


@pytest.mark.parametrize("reduce", ["mean", "no"])
def test_black_out(reduce):
    def reference(x, W):
        p = softmax(numpy.einsum("nd,nsd->ns", x, W[numpy.c_[abs(t), drawn]]), 1)
        losses = -numpy.log(p[:, 0]) - numpy.log(1 - p[:, 1:]).sum(1)
        return losses.mean() if reduce == "mean" else losses

    check(
        lambda x, W: F.black_out(x, abs(t), W, drawn, reduce), reference, x / 2, W / 2
    )


@pytest.mark.parametrize("norm", [1, 2])
def test_discriminative_loss(norm):
    embeddings = rng.normal(size=(2, 3, 4, 5))
    labels = rng.integers(0, 4, size=(2, 4, 5)).astype(numpy.int32)

    def reference(e):
        def size(v):
            return numpy.linalg.norm(v.ravel(), norm)

        means = numpy.zeros((2, 3, 3))
        spread = numpy.zeros(3)
        for k in range(3):
            for n in range(2):
                pixels = e[n][:, labels[n] == k + 1].T
                means[n, k] = pixels.mean(0)
                far = [max(size(p - means[n, k]) - 0.5, 0) for p in pixels]
                spread[k] += numpy.square(far).sum()
            spread[k] /= (labels == k + 1).sum()
        near = [
            max(3 - size(means[n, a] - means[n, b]), 0) ** 2
            for n in range(2)
            for a, b in ((0, 1), (0, 2), (1, 2))
        ]
        sizes = [size(means[:, k]) for k in range(3)]
        return 2 * spread.mean(), 3 * numpy.mean(near), 0.1 * sum(sizes) / 6

    check(
        lambda e: F.discriminative_margin_based_clustering_loss(
            e, labels, 0.5, 1.5, 3, norm, 2.0, 3.0, 0.1
        ),
        reference,
        embeddings,
    )


def test_discriminative_loss_of_one_pair():
    """Two pixels of distance 1, each a group of its own."""
    embeddings = numpy.array([[[[0.0, 1.0]], [[2.0, 2.0]]]])
    _, near, _ = F.discriminative_margin_based_clustering_loss(
        embeddings, numpy.array([[[1, 2]]], "i"), 0.5, 1.5, 2, 2, 2.0, 3.0, 0.1
    )
    assert near.array == 3.0 * (2 * 1.5 - 1) ** 2


def negative(t=t, W=W, **options):
    return F.negative_sampling(x, t, W, sampler, 2, **options)


FAULTS = [
    (lambda: negative(reduce="mean"), ValueError),
    (lambda: negative(other=1), TypeError),
    (lambda: negative(t[:2]), InvalidType),
    (lambda: negative(t.astype("f")), InvalidType),
    (lambda: negative(W=W[:, :2]), InvalidType),
    (lambda: negative(W=W.astype("f")), InvalidType),
    (lambda: F.black_out(x, t, W, drawn, "sum"), ValueError),
    (lambda: F.black_out(x, t, W, drawn[:2]), InvalidType),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()
