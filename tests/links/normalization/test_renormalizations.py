"""Batch renormalization and decorrelation, against NumPy, and their statistics."""

import copy

import numpy
import pytest

import renga
import renga.links as L
from renga import gradient_check
from tests.links.cases.link_check import loaded, saved

rng = numpy.random.default_rng(0)
X = rng.normal(1, 2, size=(7, 4))
IMAGE = rng.normal(1, 2, size=(3, 4, 2, 3))
CLOSE = {"rtol": 1e-7, "atol": 1e-9}


@pytest.fixture(autouse=True)
def doubles():
    with renga.using_config("dtype", numpy.dtype("d")):
        yield


def renormalized(x, average, variance, gamma, beta, rmax, dmax, eps=2e-5):
    mean, deviation = x.mean(0), numpy.sqrt(x.var(0) + eps)
    running = numpy.sqrt(variance + eps)
    r = numpy.clip(deviation / running, 1 / rmax, rmax)
    d = numpy.clip((mean - average) / running, -dmax, dmax)
    return ((x - mean) / deviation * r + d) * gamma + beta


def test_batch_renormalization():
    gamma, beta = rng.normal(size=(2, 4))
    link = L.BatchRenormalization(
        4, 1.5, 0.5, 0.6, initial_gamma=gamma, initial_beta=beta
    )
    average, variance = numpy.zeros(4), numpy.ones(4)
    for scale in (1, 3, 0.2):
        x = X * scale
        expected = renormalized(x, average, variance, gamma, beta, 1.5, 0.5)
        numpy.testing.assert_allclose(link(x).array, expected, **CLOSE)
        average = 0.6 * average + 0.4 * x.mean(0)
        variance = 0.6 * variance + 0.4 * x.var(0, ddof=1)
        numpy.testing.assert_allclose(link.avg_mean, average, **CLOSE)
        numpy.testing.assert_allclose(link.avg_var, variance, **CLOSE)
    with renga.using_config("train", False):
        y = link(X)
    expected = (X - average) / numpy.sqrt(variance + 2e-5) * gamma + beta
    numpy.testing.assert_allclose(y.array, expected, **CLOSE)


def test_without_correction_it_is_batch_normalization():
    link = L.BatchRenormalization(4, rmax=1, dmax=0)
    expected = (X - X.mean(0)) / numpy.sqrt(X.var(0) + 2e-5)
    numpy.testing.assert_allclose(link(X).array, expected, **CLOSE)
    link = L.BatchRenormalization(4, use_gamma=False, use_beta=False)
    assert list(link.params()) == []
    numpy.testing.assert_allclose(link(X).array, expected, **CLOSE)


def whitened(x, groups, eps=2e-5):
    """Outputs, means and projections of every group."""
    flat = numpy.moveaxis(x, 1, 0).reshape(groups, x.shape[1] // groups, -1)
    means = flat.mean(2)
    ys, projections = [], []
    for part, mean in zip(flat, means):
        values, vectors = numpy.linalg.eigh(
            numpy.cov(part, bias=True) + eps * numpy.eye(len(part))
        )
        projections.append(vectors @ numpy.diag(values**-0.5) @ vectors.T)
        ys.append(projections[-1] @ (part - mean[:, None]))
    y = numpy.concatenate(ys).reshape(x.shape[1], x.shape[0], *x.shape[2:])
    return numpy.moveaxis(y, 0, 1), means, numpy.array(projections)


@pytest.mark.parametrize("x", [X, IMAGE])
def test_decorrelated_batch_normalization(x):
    link = L.DecorrelatedBatchNormalization(4, groups=2, decay=0.6, dtype="d")
    y, mean, projection = whitened(x, 2)
    numpy.testing.assert_allclose(link(x).array, y, **CLOSE)
    n = x.size // 4
    average = 0.4 * mean
    kept = 0.6 * numpy.eye(2) + 0.4 * projection * n / (n - 1)
    numpy.testing.assert_allclose(link.avg_mean, average, **CLOSE)
    numpy.testing.assert_allclose(link.avg_projection, kept, **CLOSE)
    with renga.using_config("train", False):
        y = link(x).array
    flat = numpy.moveaxis(x, 1, 0).reshape(2, 2, -1)
    expected = kept @ (flat - average[:, :, None])
    actual = numpy.moveaxis(y, 1, 0).reshape(2, 2, -1)
    numpy.testing.assert_allclose(actual, expected, **CLOSE)


MAKES = {
    "BatchRenormalization": lambda: L.BatchRenormalization(4, rmax=2, dmax=1),
    "DecorrelatedBatchNormalization": lambda: L.DecorrelatedBatchNormalization(
        4, groups=2, dtype="d"
    ),
}
STATISTICS = {
    "BatchRenormalization": ("avg_mean", "avg_var"),
    "DecorrelatedBatchNormalization": ("avg_mean", "avg_projection"),
}


@pytest.mark.parametrize("name", MAKES)
def test_finetuning_averages_every_batch(name):
    link, alone = MAKES[name](), MAKES[name]()
    link.start_finetuning()
    alone.decay = 0
    found = []
    for scale in (1, 2, 5):
        link(X * scale, finetune=True)
        alone(X * scale)
        found.append([getattr(alone, s).copy() for s in STATISTICS[name]])
    assert link.N == 3
    for statistic, values in zip(STATISTICS[name], zip(*found)):
        mean = numpy.mean(values, axis=0)
        numpy.testing.assert_allclose(getattr(link, statistic), mean, **CLOSE)
    link.start_finetuning()
    assert link.N == 0
    with pytest.raises(TypeError):
        link(X, nonsense=True)


@pytest.mark.parametrize("name", MAKES)
def test_files_and_copies(name):
    link = MAKES[name]()
    link(X)
    files = saved(link)
    assert {"N", *STATISTICS[name]} <= set(files)
    others = [loaded(MAKES[name](), files), copy.deepcopy(link), link.copy("copy")]
    with renga.using_config("train", False):
        expected = link(X).array
        for other in others:
            assert other.to_device("@numpy") is other
            numpy.testing.assert_array_equal(other(X).array, expected)


def test_gradients():
    """With constant r and d, as in the gradient: they are at their limits."""
    link = L.BatchRenormalization(4, rmax=1.01, dmax=0.01)
    x, gy = X * 5 + 9, rng.normal(size=X.shape)
    gradient_check.check_backward(
        link, x, gy, tuple(link.params()), eps=1e-5, atol=1e-6
    )
    link = MAKES["DecorrelatedBatchNormalization"]()
    gradient_check.check_backward(link, X, gy, eps=1e-5, atol=1e-6)


def test_halves():
    x = X.astype("e")
    with renga.using_config("dtype", renga.mixed16):
        link = L.BatchRenormalization(4)
        assert link.gamma.dtype == link.avg_mean.dtype == numpy.float32
        y = link(x)
    assert y.dtype == numpy.float16
    expected = (X - X.mean(0)) / X.std(0)
    numpy.testing.assert_allclose(y.array, expected, rtol=2e-2, atol=2e-2)
    y = L.DecorrelatedBatchNormalization(4, groups=2)(x)
    assert y.dtype == numpy.float16
    numpy.testing.assert_allclose(y.array, whitened(X, 2)[0], rtol=2e-2, atol=2e-2)


def test_initial_statistics():
    link = L.DecorrelatedBatchNormalization(6, groups=3)
    assert link.avg_mean.shape == (3, 2) and not link.avg_mean.any()
    numpy.testing.assert_array_equal(link.avg_projection, [numpy.eye(2)] * 3)
    assert link.avg_mean.dtype == link.avg_projection.dtype == numpy.float32
    link = L.BatchRenormalization(2, initial_avg_mean=3, initial_avg_var=4)
    assert link.avg_mean.tolist() == [3, 3] and link.avg_var.tolist() == [4, 4]
