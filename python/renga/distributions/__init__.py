"""Probability distributions."""

from renga.distributions.beta import Beta as Beta, Dirichlet as Dirichlet
from renga.distributions.categorical import (
    Categorical as Categorical,
    OneHotCategorical as OneHotCategorical,
)
from renga.distributions.gamma import (
    Chisquare as Chisquare,
    Exponential as Exponential,
    Gamma as Gamma,
)
from renga.distributions.independent import Independent as Independent
from renga.distributions.integers import (
    Bernoulli as Bernoulli,
    Geometric as Geometric,
    Poisson as Poisson,
)
from renga.distributions.laplace import (
    Cauchy as Cauchy,
    Gumbel as Gumbel,
    Laplace as Laplace,
)
from renga.distributions.normal import (
    LogNormal as LogNormal,
    MultivariateNormal as MultivariateNormal,
    Normal as Normal,
)
from renga.distributions.uniform import Pareto as Pareto, Uniform as Uniform
