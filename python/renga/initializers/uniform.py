"""Uniform initializers: symmetric about zero, bound from the shape of the layer."""

from __future__ import annotations

import math
from typing import Any

from renga.initializers.random import FanInitializer, RandomInitializer


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
