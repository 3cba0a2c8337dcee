"""Scaled exponential linear units."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.utils.extents import check_real


def selu(
    x: ArrayLike, alpha: float = 1.6732632423543772, scale: float = 1.0507009873554805
) -> Variable:
    """``scale x``, or ``scale alpha (exp(x) - 1)`` where ``x`` is negative.

    Raises:
        TypeError: ``alpha`` or ``scale`` is not a number.
        InvalidType: ``x`` is not of floats.

    Source: Klambauer et al., Self-normalizing neural networks, 2017.
    """
    alpha = check_real("selu", "alpha", alpha)
    return _core.ops.selu(x, alpha, check_real("selu", "scale", scale))
