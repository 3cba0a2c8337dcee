"""Distributions whose samples are vectors or classes, against SciPy and NumPy."""

import numpy
import pytest
import scipy.stats

from renga import distributions as D

rng = numpy.random.default_rng(0)
P = numpy.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
ALPHA = numpy.array([[0.5, 2.0, 3.0], [1.5, 1.0, 4.0]])
LOC = rng.normal(size=(2, 3))
TRIL = numpy.tril(rng.normal(size=(2, 3, 3))) + 2 * numpy.eye(3)
COVARIANCE = TRIL @ TRIL.swapaxes(1, 2)


def close(ours, expected):
    numpy.testing.assert_allclose(ours.array, expected, rtol=1e-10, atol=1e-12)


def test_categorical():
    given = D.Categorical(P)
    x = numpy.array([[0, 2], [1, 0], [2, 1]])
    expected = numpy.log(P[numpy.arange(2), x])
    close(given.log_prob(x), expected)
    close(given.prob(x), numpy.exp(expected))
    close(given.entropy, [scipy.stats.entropy(row) for row in P])
    assert given.batch_shape == (2,) and given.event_shape == ()
    by_logit = D.Categorical(logit=numpy.log(P) + 3)
    close(by_logit.p, P)
    close(by_logit.log_prob(x), expected)


def test_classes_of_probability_zero():
    given = D.Categorical(numpy.array([0.0, 0.25, 0.75]))
    close(given.entropy, scipy.stats.entropy([0.25, 0.75]))
    close(given.log_prob(numpy.array([0, 1])), [-numpy.inf, numpy.log(0.25)])
    assert set(given.sample(500).array) == {1, 2}


def test_one_hot_categorical():
    given = D.OneHotCategorical(P)
    x = numpy.eye(3)[numpy.array([1, 2])]
    close(given.log_prob(x), numpy.log([0.5, 0.8]))
    close(given.mean, P)
    close(
        given.variance, [scipy.stats.multinomial(1, row).cov().diagonal() for row in P]
    )
    close(given.entropy, [scipy.stats.entropy(row) for row in P])
    drawn = given.sample((4,)).array
    assert drawn.shape == (4, 2, 3)
    numpy.testing.assert_array_equal(drawn.sum(axis=-1), 1)


def test_dirichlet():
    ours = D.Dirichlet(ALPHA)
    theirs = [scipy.stats.dirichlet(row) for row in ALPHA]
    x = ours.sample((5,)).array
    numpy.testing.assert_allclose(x.sum(axis=-1), 1)
    expected = [[theirs[i].logpdf(x[n, i]) for i in range(2)] for n in range(5)]
    close(ours.log_prob(x), expected)
    close(ours.mean, [t.mean() for t in theirs])
    close(ours.variance, [t.var() for t in theirs])
    close(ours.entropy, [t.entropy() for t in theirs])
    assert ours.batch_shape == (2,) and ours.event_shape == (3,)


def test_multivariate_normal():
    ours = D.MultivariateNormal(LOC, scale_tril=TRIL)
    theirs = [scipy.stats.multivariate_normal(LOC[i], COVARIANCE[i]) for i in range(2)]
    x = rng.normal(size=(5, 2, 3))
    close(ours.log_prob(x), numpy.stack([theirs[i].logpdf(x[:, i]) for i in (0, 1)], 1))
    close(ours.entropy, [t.entropy() for t in theirs])
    close(ours.covariance, COVARIANCE)
    close(ours.variance, COVARIANCE.diagonal(axis1=1, axis2=2))
    assert (ours.d, ours.batch_shape, ours.event_shape) == (3, (2,), (3,))


def test_independent():
    inner = D.Normal(LOC, numpy.exp(LOC))
    ours = D.Independent(inner)
    x = rng.normal(size=(4, 2, 3))
    theirs = scipy.stats.norm(LOC, numpy.exp(LOC))
    assert ours.batch_shape == (2,) and ours.event_shape == (3,)
    close(ours.log_prob(x), theirs.logpdf(x).sum(axis=-1))
    close(ours.cdf(x), theirs.cdf(x).prod(axis=-1))
    close(ours.survival_function(x), theirs.sf(x).prod(axis=-1))
    close(ours.log_survival_function(x), theirs.logsf(x).sum(axis=-1))
    close(ours.entropy, theirs.entropy().sum(axis=-1))
    close(ours.covariance, [numpy.diag(numpy.exp(2 * row)) for row in LOC])
    with pytest.raises(RuntimeError, match="inverted"):
        ours.icdf(x)


def test_independent_of_vectors():
    inner = D.MultivariateNormal(LOC, scale_tril=TRIL)
    ours = D.Independent(inner, 1)
    assert ours.batch_shape == () and ours.event_shape == (2, 3)
    close(ours.covariance, scipy.linalg.block_diag(*COVARIANCE))
    x = rng.normal(size=(4, 2, 3))
    close(ours.log_prob(x), inner.log_prob(x).array.sum(axis=-1))


def test_two_axes_of_a_batch_become_the_event():
    ours = D.Independent(D.Normal(numpy.zeros((2, 3, 4)), numpy.ones((2, 3, 4))), 2)
    x = rng.normal(size=(2, 3, 4))
    close(ours.log_prob(x), scipy.stats.norm.logpdf(x).sum(axis=(1, 2)))
    assert ours.covariance.shape == (2, 12, 12)
