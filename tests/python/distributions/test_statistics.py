"""Every statistic of every distribution against SciPy's."""

import numpy
import pytest
import scipy.stats

from renga import distributions as D

# Three distributions in a batch: our parameters and SciPy's.
a, b, c = [0.7, 1.5, 3.0], [2.5, 0.9, 1.2], [-1.0, 0.3, 2.0]
p = [0.2, 0.5, 0.9]
CASES = {
    "Beta": ({"a": a, "b": b}, lambda: scipy.stats.beta(a, b)),
    "Cauchy": ({"loc": c, "scale": b}, lambda: scipy.stats.cauchy(c, b)),
    "Chisquare": ({"k": [1.0, 3.0, 4.0]}, lambda: scipy.stats.chi2([1.0, 3.0, 4.0])),
    "Exponential": ({"lam": b}, lambda: scipy.stats.expon(scale=1 / numpy.array(b))),
    "Gamma": ({"k": a, "theta": b}, lambda: scipy.stats.gamma(a, scale=b)),
    "Geometric": ({"p": p}, lambda: scipy.stats.geom(p)),
    "Gumbel": ({"loc": c, "scale": b}, lambda: scipy.stats.gumbel_r(c, b)),
    "Laplace": ({"loc": c, "scale": b}, lambda: scipy.stats.laplace(c, b)),
    "LogNormal": (
        {"mu": c, "sigma": a},
        lambda: scipy.stats.lognorm(a, scale=numpy.exp(c)),
    ),
    "Normal": ({"loc": c, "scale": b}, lambda: scipy.stats.norm(c, b)),
    "Pareto": (
        {"scale": b, "alpha": [2.5, 3.0, 4.0]},
        lambda: scipy.stats.pareto([2.5, 3.0, 4.0], scale=b),
    ),
    "Poisson": ({"lam": b}, lambda: scipy.stats.poisson(b)),
    "Uniform": (
        {"loc": c, "scale": b},
        lambda: scipy.stats.uniform(c, b),
    ),
    "Bernoulli": ({"p": p}, lambda: scipy.stats.bernoulli(p)),
}
DISCRETE = {"Bernoulli", "Geometric", "Poisson"}
WITH_CDF = "Cauchy Exponential Gumbel Laplace LogNormal Normal Pareto Uniform".split()
QUANTILES = numpy.array([[0.01], [0.3], [0.5], [0.8], [0.99]])
every = pytest.mark.parametrize("name", CASES)


def make(name, dtype="f8"):
    parameters, expected = CASES[name]
    values = {k: numpy.array(v, dtype) for k, v in parameters.items()}
    return getattr(D, name)(**values), expected()


def check(ours, theirs, tolerance=1e-10):
    numpy.testing.assert_allclose(ours.array, theirs, rtol=tolerance, atol=tolerance)


@every
def test_moments(name):
    ours, theirs = make(name)
    assert ours.batch_shape == (3,) and ours.event_shape == ()
    check(ours.mean, theirs.mean())
    check(ours.variance, theirs.var())
    check(ours.stddev, theirs.std())


@every
def test_entropy(name):
    ours, theirs = make(name)
    if name == "Poisson":
        with pytest.raises(NotImplementedError, match="Poisson has no entropy"):
            _ = ours.entropy
    else:
        check(ours.entropy, theirs.entropy())


@every
@pytest.mark.parametrize(("dtype", "tolerance"), [("f8", 1e-10), ("f4", 2e-5)])
def test_probability(name, dtype, tolerance):
    ours, theirs = make(name, dtype)
    x = theirs.ppf(QUANTILES).astype(dtype)
    log = theirs.logpmf if name in DISCRETE else theirs.logpdf
    expected = log(x.astype("f8"))
    values = ours.log_prob(x)
    assert values.dtype == dtype
    # Rounding may move an end of the support outside of it.
    inside = numpy.isfinite(values.array)
    assert inside.mean() > 0.9
    numpy.testing.assert_allclose(
        values.array[inside], expected[inside], rtol=tolerance, atol=tolerance
    )
    numpy.testing.assert_allclose(
        ours.prob(x).array[inside], numpy.exp(expected[inside]), rtol=50 * tolerance
    )
    surprise = ours.perplexity(x).array
    numpy.testing.assert_allclose(
        surprise[inside], numpy.exp(-expected[inside]), rtol=50 * tolerance
    )


@pytest.mark.parametrize("name", sorted(CASES.keys() - {*DISCRETE, "Laplace"}))
def test_no_density_outside_the_support(name):
    ours, theirs = make(name)
    low = theirs.support()[0]
    if numpy.isfinite(low).all():
        outside = numpy.broadcast_to(low, (3,)) - 0.5
        numpy.testing.assert_array_equal(ours.log_prob(outside).array, -numpy.inf)


@pytest.mark.parametrize("name", WITH_CDF)
def test_cumulative_probability(name):
    ours, theirs = make(name)
    x = theirs.ppf(QUANTILES)
    check(ours.icdf(numpy.broadcast_to(QUANTILES, x.shape)), x)
    check(ours.cdf(x), theirs.cdf(x))
    check(ours.log_cdf(x), theirs.logcdf(x))
    check(ours.survival_function(x), theirs.sf(x))
    check(ours.log_survival_function(x), theirs.logsf(x))


def test_no_cdf_below_the_support():
    below = numpy.full(3, -4.0)
    for name in ("Exponential", "LogNormal", "Pareto", "Uniform"):
        numpy.testing.assert_array_equal(make(name)[0].cdf(below).array, 0)


def test_normal_far_out():
    ours, theirs = make("Normal")
    far = numpy.array([-60.0, -50.0, -45.0])
    check(ours.log_cdf(far), theirs.logcdf(far))
    check(ours.log_survival_function(-far), theirs.logsf(-far))


@pytest.mark.parametrize("name", ["Gumbel", "Laplace", "LogNormal", "Normal", "Pareto"])
def test_mode_is_where_the_density_is_largest(name):
    ours, _ = make(name)
    at_mode = ours.log_prob(ours.mode).array
    for offset in (-1e-3, 1e-3):
        assert (ours.log_prob(ours.mode.array + offset).array < at_mode).all()


def test_infinite_moments():
    heavy = D.Pareto(numpy.ones(3), numpy.array([0.5, 1.5, 2.5]))
    numpy.testing.assert_allclose(heavy.mean.array, [numpy.inf, 3, 5 / 3])
    numpy.testing.assert_allclose(
        heavy.variance.array, [numpy.inf, numpy.inf, 2.5 / (1.5**2 * 0.5)]
    )
    assert numpy.isnan(make("Cauchy")[0].mean.array).all()
