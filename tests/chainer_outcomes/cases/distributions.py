"""Distributions: every statistic in every dtype, and its corners."""

import chainer
import chainer.distributions as D
import chainer.functions as F
import numpy as np

V = chainer.Variable
# Chainer raises this error for statistics that it lacks.
OMITTED = "NotImplementedError"
X = {
    "real": np.array([[-1.5, 0.0, 0.5], [1.0, 2.0, 3.0]]),
    "positive": np.array([[0.2, 0.5, 0.75], [1.0, 2.0, 3.0]]),
    "between": np.array([[0.1, 0.25, 0.5], [0.6, 0.75, 0.9]]),
    "count": np.array([[0, 1, 2], [3, 1, 0]]),
    "above": np.array([[1.5, 2.5, 3.0], [4.0, 2.25, 6.0]]),
    "bits": np.array([[0, 1, 1], [0, 0, 1]]),
    "nonzero": np.array([[1, 2, 3], [1, 4, 2]]),
}


def p(*values, dtype="f"):
    return np.array(values, dtype)


# A distribution's arguments, and where its samples lie.
KINDS = {
    "Bernoulli": (lambda d: dict(p=p(0.2, 0.5, 0.9, dtype=d)), "bits"),
    "Beta": (
        lambda d: dict(a=p(1.5, 2, 3, dtype=d), b=p(2, 1, 0.5, dtype=d)),
        "between",
    ),
    "Cauchy": (
        lambda d: dict(loc=p(0, 1, 2, dtype=d), scale=p(1, 2, 3, dtype=d)),
        "real",
    ),
    "Chisquare": (lambda d: dict(k=p(1, 2, 3, dtype=d)), "positive"),
    "Exponential": (lambda d: dict(lam=p(1, 2, 3, dtype=d)), "positive"),
    "Gamma": (
        lambda d: dict(k=p(1, 2, 3, dtype=d), theta=p(1, 2, 0.5, dtype=d)),
        "positive",
    ),
    "Geometric": (lambda d: dict(p=p(0.2, 0.5, 0.9, dtype=d)), "nonzero"),
    "Gumbel": (
        lambda d: dict(loc=p(0, 1, 2, dtype=d), scale=p(1, 2, 3, dtype=d)),
        "real",
    ),
    "Laplace": (
        lambda d: dict(loc=p(0, 1, 2, dtype=d), scale=p(1, 2, 3, dtype=d)),
        "real",
    ),
    "LogNormal": (
        lambda d: dict(mu=p(0, 1, 2, dtype=d), sigma=p(1, 2, 3, dtype=d)),
        "positive",
    ),
    "Normal": (
        lambda d: dict(loc=p(0, 1, 2, dtype=d), scale=p(1, 2, 3, dtype=d)),
        "real",
    ),
    "Pareto": (
        lambda d: dict(scale=p(1, 1, 1, dtype=d), alpha=p(3, 2.5, 4, dtype=d)),
        "above",
    ),
    "Poisson": (lambda d: dict(lam=p(1, 2, 3, dtype=d)), "count"),
    "Uniform": (
        lambda d: dict(low=p(-2, 0, 0, dtype=d), high=p(1, 1, 3, dtype=d)),
        "real",
    ),
    "Categorical": (
        lambda d: dict(p=p([0.2, 0.3, 0.5], [0.1, 0.8, 0.1], [0, 0, 1], dtype=d)),
        "bits",
    ),
    "OneHotCategorical": (
        lambda d: dict(p=p([0.2, 0.3, 0.5], [0.1, 0.8, 0.1], dtype=d)),
        "eye",
    ),
    "Dirichlet": (lambda d: dict(alpha=p([1, 2, 3], [2, 2, 2], dtype=d)), "simplex"),
    "MultivariateNormal": (
        lambda d: dict(
            loc=p([0, 1], [1, 2], dtype=d),
            scale_tril=p([[1, 0], [0.5, 2]], [[2, 0], [0, 1]], dtype=d),
        ),
        "pairs",
    ),
}
X["eye"] = np.eye(3)[[0, 1]]
X["simplex"] = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])
X["pairs"] = np.array([[0.5, -1.0], [2.0, 1.0]])
STATISTICS = "entropy mean mode stddev variance covariance support batch_shape event_shape".split()
FUNCTIONS = "log_prob prob cdf log_cdf survival_function log_survival_function".split()


def points(name, dtype):
    kind = KINDS[name][1]
    integers = kind in ("bits", "count", "nonzero") and dtype != "f"
    return X[kind].astype("i" if integers else dtype)


def statistic(name, dtype, what):
    value = getattr(getattr(D, name)(**KINDS[name][0](dtype)), what)
    return value


def function(name, dtype, what):
    return getattr(getattr(D, name)(**KINDS[name][0](dtype)), what)(points(name, dtype))


def gradient(name):
    """The gradient of ``log_prob`` with respect to points of floats."""
    x = V(points(name, "f"))
    F.sum(getattr(D, name)(**KINDS[name][0]("f")).log_prob(x)).backward()
    return x.grad


def inverse(name, dtype):
    return getattr(D, name)(**KINDS[name][0](dtype)).icdf(X["between"].astype(dtype))


def sampled(name, shape):
    found = getattr(D, name)(**KINDS[name][0]("f")).sample(shape)
    return found.shape, str(found.dtype)


def divergence(name, dtype):
    a = getattr(D, name)(**KINDS[name][0](dtype))
    return chainer.kl_divergence(a, a)


def generated():
    found = {}
    for name in KINDS:
        for dtype in "fde":
            if name == "MultivariateNormal" and dtype == "e":
                continue
            for what in STATISTICS:
                found[f"{name} {dtype} {what}"] = lambda n=name, d=dtype, w=what: (
                    statistic(n, d, w)
                )
            for what in FUNCTIONS:
                found[f"{name} {dtype} {what}"] = lambda n=name, d=dtype, w=what: (
                    function(n, d, w)
                )
            found[f"{name} {dtype} icdf"] = lambda n=name, d=dtype: inverse(n, d)
            found[f"{name} {dtype} kl"] = lambda n=name, d=dtype: divergence(n, d)
        found[f"{name} gradient of log_prob"] = lambda n=name: gradient(n)
        for shape in ((), (2,), 3):
            found[f"{name} samples {shape}"] = lambda n=name, s=shape: sampled(n, s)
    return found


GENERATED = generated()

EXPRESSIONS = """
D.Normal(p([0.], [1.]), p(1., 2.)).mean
D.Normal(p([0.], [1.]), p(1., 2.)).variance
D.Normal(p([0.], [1.]), p(1., 2.)).entropy
D.Laplace(p([0.], [1.]), p(1., 2.)).entropy
D.Gumbel(p([0.], [1.]), p(1., 2.)).entropy
D.Cauchy(p([0.], [1.]), p(1., 2.)).entropy
D.Normal(p([0.], [1.]), p(1., 2.)).log_prob(p(.5, 1.))
D.Bernoulli(p=p(0., 1.)).entropy
D.Bernoulli(p=p(0., 1.)).log_prob(p(0, 1, dtype='i'))
D.Bernoulli(p=p(0., 1.)).log_prob(p(1, 0, dtype='i'))
D.Bernoulli(p=p(.5)).log_prob(p(.5))
D.Bernoulli(p=p(.5)).log_prob(p(2, dtype='i'))
D.Bernoulli(p=p(.5), binary_check=True).log_prob(p(.5))
D.Bernoulli(p=p(.5), binary_check=True).log_prob(p(1.))
D.Bernoulli(p=p(.5), binary_check=True).prob(p(2.))
D.Bernoulli(logit=p(0., 2., -2.)).p
D.Bernoulli(logit=p(0., 2., -2.)).entropy
D.Bernoulli(logit=p(0., 2., -2.)).log_prob(p(1, 1, 0, dtype='i'))
D.Bernoulli(logit=p(100., -100.)).log_prob(p(1, 1, dtype='i'))
D.Bernoulli(logit=p(np.inf, -np.inf)).log_prob(p(1, 0, dtype='i'))
D.Bernoulli(p=p(.5), logit=p(.5))
D.Bernoulli()
D.Bernoulli(p=p(.2, .5)).logit
D.Categorical(logit=p(0., 1., 2.)).p
D.Categorical(logit=p(0., 1., 2.)).entropy
D.Categorical(p=p(0., 0., 1.)).entropy
D.Categorical(p=p(.2, .8), logit=p(.2, .8))
D.Normal(loc=p(0.), log_scale=p(1.)).scale
D.Normal(loc=p(0.), scale=p(1.), log_scale=p(1.))
D.Normal(loc=p(0.))
D.Uniform(loc=p(0.), scale=p(2.)).high
D.Uniform(low=p(0.), high=p(1.), loc=p(0.), scale=p(1.))
D.Uniform(low=p(0.), high=p(1.)).log_prob(p(2.))
D.Exponential(lam=p(1.)).log_prob(p(-1.))
D.Pareto(scale=p(1.), alpha=p(2.)).log_prob(p(.5))
D.Pareto(scale=p(1.), alpha=p(.5)).mean
D.Pareto(scale=p(1.), alpha=p(1.5)).variance
D.Beta(a=p(.5), b=p(.5)).mode
D.Beta(a=p(1.), b=p(1.)).log_prob(p(0., 1., 2.))
D.Gamma(k=p(1.), theta=p(1.)).log_prob(p(-1., 0.))
D.LogNormal(mu=p(0.), sigma=p(1.)).log_prob(p(-1., 0.))
D.Geometric(p=p(.5)).log_prob(p(0, 1.5))
D.Poisson(lam=p(2.)).log_prob(p(-1, 0.5))
D.Dirichlet(alpha=p(1., 1., 1.)).log_prob(p(.2, .3, .6))
D.Dirichlet(alpha=p(.5, 1., 1.)).mode
D.MultivariateNormal(loc=p(0., 1.))
D.Independent(D.Normal(p([0., 1.]), p([1., 2.])), 1).log_prob(p([.5, 1.]))
D.Independent(D.Normal(p([0., 1.]), p([1., 2.])), 1).entropy
D.Independent(D.Normal(p([0., 1.]), p([1., 2.])), 1).event_shape
D.Independent(D.Normal(p([0., 1.]), p([1., 2.])), 3)
D.Independent(D.Normal(p([0., 1.]), p([1., 2.]))).batch_shape
D.Normal(p(0.), p(1.)).params
sorted(D.Normal(p(0.), p(1.)).params)
D.Normal(p(0.), p(1.)).xp is np
chainer.kl_divergence(D.Normal(p(0.), p(1.)), D.Normal(p(1.), p(2.)))
chainer.kl_divergence(D.Normal(p(0.), p(1.)), D.Uniform(low=p(0.), high=p(1.)))
chainer.kl_divergence(D.Uniform(low=p(0.), high=p(1.)), D.Uniform(low=p(-1.), high=p(2.)))
chainer.kl_divergence(D.Bernoulli(p(.2)), D.Bernoulli(p(.7)))
chainer.kl_divergence(D.Gamma(k=p(2.), theta=p(1.)), D.Gamma(k=p(1.), theta=p(2.)))
chainer.kl_divergence(D.Pareto(scale=p(2.), alpha=p(2.)), D.Pareto(scale=p(1.), alpha=p(3.)))
chainer.cross_entropy(D.Normal(p(0.), p(1.)), D.Normal(p(1.), p(2.)))
F.gumbel_softmax(p(.2, .8)).shape
F.gumbel_softmax(p([.2, .8]), tau=.5).shape
F.gumbel_softmax(p([.2, .8]), axis=0)
F.gumbel_softmax(p([.2, .8]), axis=2)
"""
