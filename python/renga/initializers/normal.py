"""Normal initializers: zero mean, deviation from the shape of the layer."""

from __future__ import annotations

import math
from typing import Any

from renga.core.types import DTypeLike, Random
from renga.initializers.random import FanInitializer, RandomInitializer


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
        if self.fan_option not in fans:
            raise ValueError(
                "HeNormal: expected fan_option 'fan_in' or 'fan_out', "
                f"got {self.fan_option!r}"
            )
        return math.sqrt(2 / max(fans[self.fan_option], 1))
