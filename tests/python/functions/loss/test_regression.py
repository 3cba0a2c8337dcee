"""Losses of differences, margins, distributions and covariances against NumPy."""

import numpy
import pytest
from scipy import stats
from scipy.special import expit

import renga
import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
x, y, z = rng.normal(size=(3, 4, 3))
t = numpy.array([0, 2, 1, 0])
same = numpy.array([1, 0, 0, 1])
SPREAD = {"sum": numpy.sum, "mean": numpy.mean, "no": lambda x: x}


def huber(x, y):
    d = abs(x - y)
    return numpy.where(d < 0.8, d * d / 2, 0.8 * (d - 0.4))


def margins(x):
    sign = 1 - 2 * numpy.eye(3)[t]
    return numpy.maximum(1 + sign * x, 0)


def pairs(x, y):
    d = numpy.linalg.norm(x - y, axis=1)
    return numpy.where(same == 1, d**2, numpy.maximum(2.5 - d, 0) ** 2) / 2


def triplets(x, y, z):
    near, far = (((x - other) ** 2).sum(1) for other in (y, z))
    return numpy.maximum(near - far + 1.5, 0)


def covariance(x, y):
    return numpy.cov(x.T, y.T, bias=True)[: x.shape[1], x.shape[1] :]


def off_diagonal(x):
    found = numpy.cov(x.T, bias=True)
    return found - numpy.diag(numpy.diag(found))


def half_squares(covariances):
    return (covariances**2).sum() / 2


def with_option(function, **options):
    return lambda *xs: function(*xs, **options)


CASES = {
    "absolute": (F.absolute_error, lambda x, y: abs(x - y), x, y),
    "mean absolute": (F.mean_absolute_error, lambda x, y: abs(x - y).mean(), x, y),
    "squared": (F.squared_error, lambda x, y: (x - y) ** 2, x, y),
    "huber": (with_option(F.huber_loss, delta=0.8), lambda *a: huber(*a).sum(1), x, y),
    "huber no": (with_option(F.huber_loss, delta=0.8, reduce="no"), huber, x, y),
    "hinge": (lambda x: F.hinge(x, t), lambda x: margins(x).sum() / 4, x),
    "hinge no": (lambda x: F.hinge(x, t, reduce="no"), margins, x),
    "hinge L2": (
        lambda x: F.hinge(x, t, "L2"),
        lambda x: (margins(x) ** 2).sum() / 4,
        x,
    ),
    "contrastive": (
        lambda *a: F.contrastive(*a, same, 2.5),
        lambda *a: pairs(*a).mean(),
        x,
        y,
    ),
    "contrastive no": (lambda *a: F.contrastive(*a, same, 2.5, "no"), pairs, x, y),
    "triplet": (
        with_option(F.triplet, margin=1.5),
        lambda *a: triplets(*a).mean(),
        x,
        y,
        z,
    ),
    "triplet no": (with_option(F.triplet, margin=1.5, reduce="no"), triplets, x, y, z),
    "cross": (
        F.cross_covariance,
        lambda *a: half_squares(covariance(*a)),
        x,
        y[:, :2].copy(),
    ),
    "cross no": (with_option(F.cross_covariance, reduce="no"), covariance, x, y),
    "decov": (F.decov, lambda x: half_squares(off_diagonal(x)), x),
    "decov no": (with_option(F.decov, reduce="no"), off_diagonal, x),
}


@pytest.mark.parametrize("name", CASES)
def test_loss(name):
    function, reference, *arrays = CASES[name]
    check(function, reference, *arrays)


@pytest.mark.parametrize("reduce", SPREAD)
def test_densities(reduce):
    def spread(losses):
        return lambda *xs: SPREAD[reduce](losses(*xs))

    def bernoulli(x, y):
        return -x * numpy.log(expit(y)) - (1 - x) * numpy.log(expit(-y))

    def gaussian(x, mean, ln_var):
        return -stats.norm.logpdf(x, mean, numpy.exp(ln_var / 2))

    def divergence(mean, ln_var):
        return (mean**2 + numpy.exp(ln_var) - ln_var - 1) / 2

    check(with_option(F.bernoulli_nll, reduce=reduce), spread(bernoulli), expit(x), y)
    check(with_option(F.gaussian_nll, reduce=reduce), spread(gaussian), x, y, z)
    check(
        with_option(F.gaussian_kl_divergence, reduce=reduce), spread(divergence), x, y
    )


def test_the_divergence_of_almost_standard_distributions_is_accurate():
    means, logarithms = numpy.full(100, 1e-4, "f"), numpy.full(100, 2e-3, "f")
    m, v = means.astype("d"), logarithms.astype("d")
    exact = (m**2 + numpy.expm1(v) - v) / 2
    loss = F.gaussian_kl_divergence(means, logarithms)
    numpy.testing.assert_allclose(loss.array, exact.sum(), rtol=1e-3)


def test_equal_pairs_have_a_zero_gradient():
    v = renga.Variable(x)
    loss = F.contrastive(v, x, same)
    loss.backward()
    assert float(loss.array) == pytest.approx(0.25)
    assert (v.grad == 0).all()


FAULTS = [
    (lambda: F.absolute_error(x, y[:1]), InvalidType),
    (lambda: F.mean_absolute_error(x, y.astype("f")), InvalidType),
    (lambda: F.squared_error(t, t), InvalidType),
    (lambda: F.huber_loss(x, y, 1, "mean"), ValueError),
    (lambda: F.huber_loss(x, y[:1], 1), InvalidType),
    (lambda: F.hinge(x, t, "L3", "sum"), NotImplementedError),
    (lambda: F.hinge(x, t, "L2", "sum"), ValueError),
    (lambda: F.hinge(x, t * 1.0), InvalidType),
    (lambda: F.hinge(x, t[:2]), InvalidType),
    (lambda: F.hinge(x, t + 5), IndexError),
    (lambda: F.bernoulli_nll(x, y, "none"), ValueError),
    (lambda: F.gaussian_nll(x, y, z, "none"), ValueError),
    (lambda: F.gaussian_kl_divergence(x, y, "none"), ValueError),
    (lambda: F.gaussian_nll(x, y, z.astype("f")), InvalidType),
    (lambda: F.contrastive(x, y, same, 0), ValueError),
    (lambda: F.contrastive(x, y, same, 1, "sum"), ValueError),
    (lambda: F.contrastive(x, y, same * 1.0), InvalidType),
    (lambda: F.contrastive(x, y, same[:2]), InvalidType),
    (lambda: F.triplet(x, y, z, 0), ValueError),
    (lambda: F.triplet(x, y, z, 1, "sum"), ValueError),
    (lambda: F.triplet(x, y, z[:2]), InvalidType),
    (lambda: F.cross_covariance(x, y, "sum"), ValueError),
    (lambda: F.cross_covariance(x, y[:2]), InvalidType),
    (lambda: F.decov(x, "sum"), ValueError),
    (lambda: F.decov(x[0]), InvalidType),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()
