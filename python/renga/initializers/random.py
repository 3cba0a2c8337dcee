"""Initializers that draw random numbers: normal and uniform ones."""

from __future__ import annotations

import math
from typing import Any

import numpy

from renga.core import initializer
from renga.core.types import Array, DTypeLike, Random
from renga.utils.argument import check_choice, check_number


class RandomInitializer(initializer.Initializer):
    """Draws values from a distribution of size ``scale``.

    ``rng`` is a ``RandomState`` or a ``Generator``; by default NumPy's global
    generator on every device, so ``numpy.random.seed`` reproduces the values.
    """

    def __init__(
        self,
        scale: float = 0.05,
        dtype: DTypeLike | None = None,
        *,
        rng: Random | None = None,
    ) -> None:
        check_number(f"{type(self).__name__}: scale", scale)
        self.scale = scale
        self.rng = rng
        super().__init__(dtype)

    def __call__(self, array: Array) -> None:
        self._check_dtype(array)
        self._draw(array, self.scale)

    def _draw(self, array: Any, size: float) -> None:
        raise NotImplementedError

    def _generator(self) -> Any:
        return numpy.random if self.rng is None else self.rng


class FanInitializer(RandomInitializer):
    """Draws from a distribution whose size follows from the shape of the weight."""

    def __init__(
        self,
        scale: float = 1.0,
        dtype: DTypeLike | None = None,
        *,
        rng: Random | None = None,
    ) -> None:
        super().__init__(scale, dtype, rng=rng)

    def __call__(self, array: Array) -> None:
        self._check_dtype(array)
        if array.size == 0:
            return  # a weight without inputs has no fan_in
        fan_in, fan_out = initializer.get_fans(array.shape)
        self._draw(array, self.scale * self._size(fan_in, fan_out))

    def _size(self, fan_in: int, fan_out: int) -> float:
        raise NotImplementedError


class Normal(RandomInitializer):
    """Draws from a normal distribution with standard deviation ``scale``."""

    def _draw(self, array: Any, size: float) -> None:
        generator = self._generator()
        self._fill(array, generator.normal(loc=0.0, scale=size, size=array.shape))


class LeCunNormal(FanInitializer, Normal):
    """Draws with deviation ``scale * sqrt(1 / fan_in)`` (LeCun et al., 1998)."""

    def _size(self, fan_in: int, fan_out: int) -> float:
        return math.sqrt(1 / max(fan_in, 1))


class GlorotNormal(FanInitializer, Normal):
    """Draws with deviation ``scale * sqrt(2 / (fan_in + fan_out))``.

    Source: Glorot and Bengio, AISTATS 2010.
    """

    def _size(self, fan_in: int, fan_out: int) -> float:
        return math.sqrt(2 / max(fan_in + fan_out, 1))


class HeNormal(FanInitializer, Normal):
    """Draws with deviation ``scale * sqrt(2 / fan)``, for layers before a ReLU.

    ``fan_option`` is the fan used: ``"fan_in"`` keeps the size of the activations,
    ``"fan_out"`` that of the gradients (He et al., ICCV 2015).
    """

    def __init__(
        self,
        scale: float = 1.0,
        dtype: DTypeLike | None = None,
        fan_option: str = "fan_in",
        *,
        rng: Random | None = None,
    ) -> None:
        self.fan_option = fan_option
        super().__init__(scale, dtype, rng=rng)

    def _size(self, fan_in: int, fan_out: int) -> float:
        fans = {"fan_in": fan_in, "fan_out": fan_out}
        check_choice("HeNormal: expected fan_option", self.fan_option, *fans)
        return math.sqrt(2 / max(fans[self.fan_option], 1))


class Uniform(RandomInitializer):
    """Draws evenly from [-``scale``, ``scale``)."""

    def _draw(self, array: Any, size: float) -> None:
        generator = self._generator()
        self._fill(array, generator.uniform(low=-size, high=size, size=array.shape))


class LeCunUniform(FanInitializer, Uniform):
    """Draws within ``scale * sqrt(3 / fan_in)`` (LeCun et al., 1998)."""

    def _size(self, fan_in: int, fan_out: int) -> float:
        return math.sqrt(3 / max(fan_in, 1))


class GlorotUniform(FanInitializer, Uniform):
    """Draws within ``scale * sqrt(6 / (fan_in + fan_out))``.

    Source: Glorot and Bengio, AISTATS 2010.
    """

    def _size(self, fan_in: int, fan_out: int) -> float:
        return math.sqrt(6 / (fan_in + fan_out))


class HeUniform(FanInitializer, Uniform):
    """Draws within ``scale * sqrt(6 / fan_in)``, for layers before a ReLU.

    Source: He et al., ICCV 2015.
    """

    def _size(self, fan_in: int, fan_out: int) -> float:
        return math.sqrt(6 / max(fan_in, 1))
