"""The base of probability distributions, and divergences between two of them."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Callable

import numpy

import renga.functions as F
from renga.core import backend
from renga.core.dtypes import get_dtype
from renga.core.types import Array, ArrayLike, Extents, Operand
from renga.core.variable import Variable, as_variable


class Distribution:
    """A batch of probability distributions with differentiable parameters.

    A subclass implements ``batch_shape``, ``event_shape``, ``params``, ``log_prob`` and
    ``sample_n``, and of the rest what has a formula; other methods raise
    NotImplementedError.

    Shapes:
        parameters: ``batch_shape``, then the axes of one parameter
        samples: ``sample_shape + batch_shape + event_shape``
        log_prob(x), entropy: one number for each distribution of the batch
    """

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape in which the distributions are arranged."""
        raise _missing(self, "batch_shape")

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one sample of one distribution."""
        raise _missing(self, "event_shape")

    @property
    def params(self) -> dict[str, Variable]:
        """The parameters by name."""
        raise _missing(self, "params")

    @property
    def support(self) -> str:
        """Where the probability is not zero, in words."""
        raise _missing(self, "support")

    @property
    def xp(self) -> ModuleType:
        """The array module of the parameters."""
        return backend.get_array_module(*self.params.values())

    @property
    def mean(self) -> Variable:
        raise _missing(self, "mean")

    @property
    def mode(self) -> Variable:
        raise _missing(self, "mode")

    @property
    def variance(self) -> Variable:
        raise _missing(self, "variance")

    @property
    def stddev(self) -> Variable:
        return F.sqrt(self.variance)

    @property
    def covariance(self) -> Variable:
        raise _missing(self, "covariance")

    @property
    def entropy(self) -> Variable:
        """In nats."""
        raise _missing(self, "entropy")

    def perplexity(self, x: ArrayLike) -> Variable:
        """``exp(-log_prob(x))``: how surprising ``x`` is."""
        return F.exp(-self.log_prob(x))

    def log_prob(self, x: ArrayLike) -> Variable:
        """The logarithm of the probability, or of its density, at ``x``."""
        raise _missing(self, "log_prob")

    def prob(self, x: ArrayLike) -> Variable:
        return F.exp(self.log_prob(x))

    def cdf(self, x: ArrayLike) -> Variable:
        """The probability of a value up to ``x``."""
        raise _missing(self, "cdf")

    def icdf(self, x: ArrayLike) -> Variable:
        """The value below which a sample is with probability ``x``."""
        raise _missing(self, "icdf")

    def log_cdf(self, x: ArrayLike) -> Variable:
        return F.log(self.cdf(x))

    def survival_function(self, x: ArrayLike) -> Variable:
        """The probability of a value over ``x``."""
        return 1 - self.cdf(x)

    def log_survival_function(self, x: ArrayLike) -> Variable:
        return F.log1p(-self.cdf(x))

    def sample(self, sample_shape: Extents = ()) -> Variable:
        """Draws from NumPy's global generator; ``sample_shape`` is a shape or a number.

        Gradients reach the parameters of a distribution whose samples are a smooth
        function of them and of noise.
        """
        shape = sample_shape if isinstance(sample_shape, tuple) else (sample_shape,)
        drawn = self.sample_n(int(numpy.prod(shape)))
        return F.reshape(drawn, shape + drawn.shape[1:])

    def sample_n(self, n: int) -> Variable:
        """``n`` samples along a new first axis."""
        raise _missing(self, "sample_n")

    def _draw(self, noise: Any, n: int, dtype: Any, *parameters: Any) -> Any:
        """``noise(*parameters, size)``, a number for each element of ``n`` batches."""
        size = (n, *self.batch_shape, *self.event_shape)
        return noise(*parameters, size).astype(dtype)


class Univariate(Distribution):
    """A distribution of numbers; its parameters broadcast to the batch."""

    event_shape = ()
    parameter_names: tuple[str, ...] = ()

    @property
    def batch_shape(self) -> tuple[int, ...]:
        shapes = (parameter.shape for parameter in self.params.values())
        return numpy.broadcast_shapes(*shapes)

    @property
    def params(self) -> dict[str, Variable]:
        return {name: getattr(self, name) for name in self.parameter_names}

    def _broadcast(self, parameter: Variable) -> Variable:
        """The parameter, broadcast to the batch."""
        return F.broadcast_to(parameter, self.batch_shape)


def as_parameter(value: Operand) -> Variable:
    """A Variable over ``value``, which may also be a number."""
    if numpy.isscalar(value):
        value = numpy.asarray(value, get_dtype())
    return as_variable(value)


def within(inside: Array, value: Variable, outside: float = -numpy.inf) -> Variable:
    """``value`` where ``inside`` is true, ``outside`` elsewhere."""
    xp = backend.get_array_module(value)
    elsewhere = xp.full(value.shape, outside, value.dtype)
    return F.where(xp.broadcast_to(inside, value.shape), value, elsewhere)


def x_log_x(x: Variable) -> Variable:
    """``x log x``, which is 0 at 0, as is its gradient there."""
    return x * F.log(within(x.array != 0, x, 1))


def _missing(distribution: Distribution, name: str) -> NotImplementedError:
    return NotImplementedError(f"{type(distribution).__name__} has no {name}")


_Divergence = Callable[[Any, Any], Variable]
_DIVERGENCES: dict[tuple[type, type], _Divergence] = {}


def register_kl(Dist1: type, Dist2: type) -> Callable[[_Divergence], _Divergence]:
    """Decorator that registers the function for ``kl_divergence`` of these classes."""

    def register(function: _Divergence) -> _Divergence:
        _DIVERGENCES[Dist1, Dist2] = function
        return function

    return register


def kl_divergence(dist1: Distribution, dist2: Distribution) -> Variable:
    """The Kullback-Leibler divergence of ``dist1`` from ``dist2``, in nats.

    It is the mean of ``log p1(x) - log p2(x)`` over samples of ``dist1``, one number
    for each distribution of the batch.

    >>> import renga
    >>> from renga.distributions import Normal
    >>> float(renga.kl_divergence(Normal(2.0, 1.0), Normal(0.0, 1.0)).array)
    2.0

    Raises:
        KeyError: no formula is registered for the two classes.
    """
    classes = type(dist1), type(dist2)
    if classes not in _DIVERGENCES:
        names = " and ".join(c.__name__ for c in classes)
        raise KeyError(f"kl_divergence: expected classes of register_kl, got {names}")
    return _DIVERGENCES[classes](dist1, dist2)


def cross_entropy(dist1: Distribution, dist2: Distribution) -> Variable:
    """The mean of ``-log p2(x)`` over samples of ``dist1``, in nats."""
    return dist1.entropy + kl_divergence(dist1, dist2)
