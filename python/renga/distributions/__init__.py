"""Probability distributions."""

from renga.distributions.bernoulli import Bernoulli as Bernoulli
from renga.distributions.beta import Beta as Beta
from renga.distributions.categorical import Categorical as Categorical
from renga.distributions.cauchy import Cauchy as Cauchy
from renga.distributions.chisquare import Chisquare as Chisquare
from renga.distributions.dirichlet import Dirichlet as Dirichlet
from renga.distributions.exponential import Exponential as Exponential
from renga.distributions.gamma import Gamma as Gamma
from renga.distributions.geometric import Geometric as Geometric
from renga.distributions.gumbel import Gumbel as Gumbel
from renga.distributions.independent import Independent as Independent
from renga.distributions.laplace import Laplace as Laplace
from renga.distributions.log_normal import LogNormal as LogNormal
from renga.distributions.multivariate_normal import (
    MultivariateNormal as MultivariateNormal,
)
from renga.distributions.normal import Normal as Normal
from renga.distributions.one_hot_categorical import (
    OneHotCategorical as OneHotCategorical,
)
from renga.distributions.pareto import Pareto as Pareto
from renga.distributions.poisson import Poisson as Poisson
from renga.distributions.uniform import Uniform as Uniform
