"""Relatives of the Gauss error function."""

from __future__ import annotations

import math
from typing import Any

from renga import _core
from renga.core.variable import Variable
from renga.functions.math.special import special
from renga.functions.on_host import on_host


@on_host
def erfc(x: Any) -> Variable:
    """``1 - erf(x)``, exact where that is near 0.

    Raises:
        InvalidType: ``x`` is not of floats.
    """
    exp, square = _core.ops.exp, _core.ops.square
    slope = -2 / math.sqrt(math.pi)
    return special("erfc", x, lambda x, y: exp(-square(x)) * slope)


@on_host
def erfcx(x: Any) -> Variable:
    """``exp(x ** 2) erfc(x)`` without overflow.

    Raises:
        InvalidType: ``x`` is not of floats.
    """
    slope = -2 / math.sqrt(math.pi)
    return special("erfcx", x, lambda x, y: x * y * 2 + slope)


@on_host
def erfinv(x: Any) -> Variable:
    """The inverse of ``erf``.

    Raises:
        InvalidType: ``x`` is not of floats.
    """
    exp, square = _core.ops.exp, _core.ops.square
    slope = math.sqrt(math.pi) / 2
    return special("erfinv", x, lambda x, y: exp(square(y)) * slope)


@on_host
def erfcinv(x: Any) -> Variable:
    """The inverse of ``erfc``.

    Raises:
        InvalidType: ``x`` is not of floats.
    """
    exp, square = _core.ops.exp, _core.ops.square
    slope = -math.sqrt(math.pi) / 2
    return special("erfcinv", x, lambda x, y: exp(square(y)) * slope)
