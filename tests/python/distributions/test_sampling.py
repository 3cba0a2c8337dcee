"""Samples: their distribution, their shapes, and gradients through them."""

import numpy
import pytest
import scipy.stats

import renga
import renga.functions as F
from renga import distributions as D, gradient_check
from tests.python.distributions.test_statistics import CASES, DISCRETE, make

REPARAMETERISED = (
    "Cauchy Exponential Gumbel Laplace LogNormal Normal Pareto Uniform".split()
)


@pytest.mark.parametrize("name", sorted(CASES.keys() - DISCRETE))
def test_samples_follow_the_distribution(name):
    numpy.random.seed(0)
    ours, theirs = make(name)
    drawn = ours.sample(2000).array
    for i in range(3):
        uniform = theirs.cdf(drawn)[:, i]
        assert scipy.stats.kstest(uniform, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("name", sorted(DISCRETE))
def test_counts_follow_the_distribution(name):
    numpy.random.seed(0)
    ours, theirs = make(name)
    drawn = ours.sample(4000).array
    deviation = abs(drawn.mean(axis=0) - theirs.mean()) / theirs.std()
    assert (deviation < 4 / 4000**0.5).all()
    numpy.testing.assert_allclose(drawn.var(axis=0), theirs.var(), rtol=0.15)


def test_frequencies_of_classes():
    numpy.random.seed(0)
    p = numpy.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    drawn = D.Categorical(p).sample(4000).array
    counts = numpy.stack([numpy.bincount(column, minlength=3) for column in drawn.T])
    for row, count in zip(p, counts):
        assert scipy.stats.chisquare(count, 4000 * row).pvalue > 1e-3


def test_numpy_draws_the_same_from_the_same_seed():
    p = numpy.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    numpy.random.seed(0)
    classes = [numpy.random.choice(3, 5, p=row) for row in p]
    fractions = [numpy.random.dirichlet(row, 5) for row in p]
    numpy.random.seed(0)
    drawn = D.Categorical(p).sample(5).array
    numpy.testing.assert_array_equal(drawn, numpy.stack(classes, 1))
    drawn = D.Dirichlet(p).sample(5).array
    numpy.testing.assert_allclose(drawn, numpy.stack(fractions, 1), rtol=1e-12)


def test_multivariate_samples():
    numpy.random.seed(0)
    tril = numpy.array([[1.0, 0, 0], [0.5, 2, 0], [-1, 0.3, 0.7]])
    drawn = D.MultivariateNormal(numpy.arange(3.0), scale_tril=tril).sample(5000)
    numpy.testing.assert_allclose(drawn.array.mean(0), [0, 1, 2], atol=0.15)
    numpy.testing.assert_allclose(numpy.cov(drawn.array.T), tril @ tril.T, atol=0.3)


@pytest.mark.parametrize("name", CASES)
def test_shapes(name):
    ours, _ = make(name, "f4")
    assert ours.sample().shape == (3,)
    assert ours.sample(4).shape == (4, 3)
    assert ours.sample((2, 5)).shape == (2, 5, 3)
    assert ours.sample_n(6).shape == (6, 3)
    assert ours.sample().dtype == (int if name == "Bernoulli" else numpy.float32)


def test_the_seed_makes_the_sample():
    ours, _ = make("Gamma")
    numpy.random.seed(3)
    first = ours.sample(3).array
    numpy.random.seed(3)
    numpy.testing.assert_array_equal(ours.sample(3).array, first)


@pytest.mark.parametrize("name", REPARAMETERISED)
def test_gradients_through_samples(name):
    values = [numpy.array(v) for v in CASES[name][0].values()]

    def draw(*parameters):
        numpy.random.seed(1)
        return getattr(D, name)(**dict(zip(CASES[name][0], parameters))).sample(2)

    gradient_check.check_backward(
        draw, tuple(values), numpy.ones((2, 3)), dtype="f8", atol=1e-4, rtol=1e-4
    )


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_log_prob(name):
    _, theirs = make(name)
    x = theirs.ppf([0.3, 0.6, 0.9])
    names, values = zip(*CASES[name][0].items())

    def log_prob(*parameters):
        return getattr(D, name)(**dict(zip(names, parameters))).log_prob(x)

    gradient_check.check_backward(
        log_prob,
        tuple(map(numpy.array, values)),
        numpy.ones(3),
        dtype="f8",
        atol=1e-4,
        rtol=1e-4,
    )


def test_gradients_of_vectors():
    x = numpy.random.default_rng(0).normal(size=(2, 3))
    tril = numpy.tril(numpy.random.default_rng(1).normal(size=(2, 3, 3)))
    tril += 2 * numpy.eye(3)

    def log_prob(loc, scale):
        return D.MultivariateNormal(loc, scale_tril=scale).log_prob(x)

    gradient_check.check_backward(
        log_prob, (x + 1, tril), numpy.ones(2), dtype="f8", atol=1e-4, rtol=1e-4
    )


def test_a_variational_bound_can_be_trained():
    # The normal that is closest to exp(-(x - 2)² / 2): mean 2, deviation 1.
    numpy.random.seed(0)
    loc = renga.Parameter(numpy.zeros(()))
    log_scale = renga.Parameter(numpy.full((), -1.0))
    for _ in range(300):
        guess = D.Normal(loc, log_scale=log_scale)
        z = guess.sample(64)
        loss = F.mean(guess.log_prob(z) + 0.5 * F.square(z - 2))
        loss.backward()
        for parameter in (loc, log_scale):
            parameter.array -= 0.05 * parameter.grad
            parameter.cleargrad()
    assert float(loc.array) == pytest.approx(2, abs=0.1)
    assert float(numpy.exp(log_scale.array)) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    ("leaf", "arguments", "message"),
    [
        (D.Normal, {"loc": numpy.zeros(1)}, "`scale` and `log_scale`"),
        (D.Bernoulli, {}, "`p` and `logit`"),
        (D.Categorical, {}, "`p` and `logit`"),
        (D.Uniform, {"low": numpy.zeros(1)}, "`low` and `high`"),
        (D.MultivariateNormal, {"loc": numpy.zeros(1)}, "scale_tril"),
    ],
)
def test_parameters_that_are_missing(leaf, arguments, message):
    with pytest.raises(ValueError, match=message):
        leaf(**arguments)


def test_numbers_are_parameters_too():
    assert D.Normal(0.0, 2.0).variance.array == 4
    binary = D.Bernoulli(p=numpy.array([0.3, 0.3]), binary_check=True)
    numpy.testing.assert_allclose(
        binary.log_prob(numpy.array([0.5, 1])).array, [-numpy.inf, numpy.log(0.3)]
    )
