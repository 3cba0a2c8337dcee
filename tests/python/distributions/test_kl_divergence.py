"""Divergences against integrals and sums of SciPy's densities."""

import numpy
import pytest
import scipy.integrate
import scipy.stats

import renga
from renga import distributions as D

CONTINUOUS = [
    (D.Beta, {"a": 1.5, "b": 2.0}, {"a": 2.5, "b": 1.2}, (0, 1)),
    (D.Exponential, {"lam": 0.7}, {"lam": 1.9}, (0, 60)),
    (D.Gamma, {"k": 2.5, "theta": 0.8}, {"k": 1.5, "theta": 1.7}, (0, 60)),
    (D.Gumbel, {"loc": 0.3, "scale": 1.2}, {"loc": -0.4, "scale": 2.0}, (-10, 60)),
    (D.Laplace, {"loc": 0.3, "scale": 1.2}, {"loc": -0.4, "scale": 2.0}, (-50, 50)),
    (D.LogNormal, {"mu": 0.1, "sigma": 0.5}, {"mu": -0.4, "sigma": 0.8}, (0, 80)),
    (D.Normal, {"loc": 0.3, "scale": 1.2}, {"loc": -0.4, "scale": 2.0}, (-20, 20)),
    (
        D.Pareto,
        {"scale": 1.5, "alpha": 4.0},
        {"scale": 1.1, "alpha": 2.5},
        (1.5, numpy.inf),
    ),
    (D.Uniform, {"low": 0.2, "high": 1.0}, {"low": -1.0, "high": 3.0}, (0.2, 1.0)),
]
DISCRETE = [
    (D.Bernoulli, {"p": 0.3}, {"p": 0.8}, range(2)),
    (D.Geometric, {"p": 0.3}, {"p": 0.8}, range(1, 300)),
    (D.Poisson, {"lam": 2.5}, {"lam": 1.2}, range(100)),
    (D.Categorical, {"p": [0.2, 0.8]}, {"p": [0.6, 0.4]}, range(2)),
    (D.OneHotCategorical, {"p": [0.2, 0.8]}, {"p": [0.6, 0.4]}, numpy.eye(2)),
]


def make(leaf, parameters):
    return leaf(**{k: numpy.array(v) for k, v in parameters.items()})


# The densities have tests of their own, against SciPy.
@pytest.mark.parametrize("case", CONTINUOUS, ids=lambda c: c[0].__name__)
def test_integral(case):
    leaf, first, second, bounds = case
    p, q = make(leaf, first), make(leaf, second)

    def integrand(x):
        x = numpy.array(x)
        log_p = float(p.log_prob(x).array)
        return numpy.exp(log_p) * (log_p - float(q.log_prob(x).array))

    split = None if numpy.isinf(bounds[1]) else [0.5, 1.0, 3.0]
    expected, _ = scipy.integrate.quad(integrand, *bounds, points=split, limit=200)
    divergence = float(renga.kl_divergence(p, q).array)
    assert divergence == pytest.approx(expected, rel=1e-6)
    assert float(renga.kl_divergence(p, p).array) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("case", DISCRETE, ids=lambda c: c[0].__name__)
def test_sum(case):
    leaf, first, second, values = case
    p, q = make(leaf, first), make(leaf, second)
    x = [numpy.asarray(value) for value in values]
    log_p, log_q = (numpy.array([d.log_prob(v).array for v in x]) for d in (p, q))
    expected = numpy.sum(numpy.exp(log_p) * (log_p - log_q))
    divergence = float(renga.kl_divergence(p, q).array)
    assert divergence == pytest.approx(expected, rel=1e-9)
    if leaf is not D.Poisson:
        surprise = float(renga.cross_entropy(p, q).array)
        assert surprise == pytest.approx(-numpy.sum(numpy.exp(log_p) * log_q))


def test_dirichlet_of_two_components_is_beta():
    dirichlet = renga.kl_divergence(
        D.Dirichlet(numpy.array([1.5, 2.0])), D.Dirichlet(numpy.array([2.5, 1.2]))
    )
    leaf, first, second, _ = CONTINUOUS[0]
    beta = renga.kl_divergence(make(leaf, first), make(leaf, second))
    numpy.testing.assert_allclose(dirichlet.array, beta.array)


def test_multivariate_normal():
    rng = numpy.random.default_rng(0)
    loc = rng.normal(size=(2, 3))
    tril = numpy.tril(rng.normal(size=(2, 3, 3))) + 2 * numpy.eye(3)
    p, q = (D.MultivariateNormal(loc[i], scale_tril=tril[i]) for i in (0, 1))
    cov = tril @ tril.swapaxes(1, 2)
    inverse, shift = numpy.linalg.inv(cov[1]), loc[1] - loc[0]
    determinants = numpy.linalg.det(cov)
    expected = 0.5 * (
        numpy.trace(inverse @ cov[0])
        + shift @ inverse @ shift
        - 3
        + numpy.log(determinants[1] / determinants[0])
    )
    numpy.testing.assert_allclose(renga.kl_divergence(p, q).array, expected)


def test_independent_sums_over_the_event():
    loc = numpy.arange(6.0).reshape(2, 3)
    p, q = D.Normal(loc, numpy.ones((2, 3))), D.Normal(2 * loc, numpy.ones((2, 3)))
    joint = renga.kl_divergence(D.Independent(p), D.Independent(q))
    numpy.testing.assert_allclose(joint.array, (0.5 * loc**2).sum(axis=1))
    with pytest.raises(ValueError, match="1 and 2"):
        renga.kl_divergence(D.Independent(p, 1), D.Independent(q, 2))


def test_a_support_that_does_not_cover_the_other():
    narrow = D.Uniform(low=numpy.zeros(1), high=numpy.ones(1))
    wide = D.Uniform(low=-numpy.ones(1), high=numpy.ones(1))
    assert renga.kl_divergence(wide, narrow).array == numpy.inf


def test_unknown_pair():
    normal = D.Normal(numpy.zeros(1), numpy.ones(1))
    with pytest.raises(KeyError, match="Normal and Cauchy"):
        renga.kl_divergence(normal, D.Cauchy(numpy.zeros(1), numpy.ones(1)))


def test_own_formula():
    class Point(D.Normal):
        pass

    @renga.register_kl(Point, D.Normal)
    def divergence(first, second):
        return second.loc

    point = Point(numpy.zeros(2), numpy.ones(2))
    normal = D.Normal(numpy.full(2, 7.0), numpy.ones(2))
    assert renga.kl_divergence(point, normal) is normal.loc
