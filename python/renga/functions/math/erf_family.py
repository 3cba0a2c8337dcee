"""The scaled complement of the Gauss error function."""

from __future__ import annotations

import math
from typing import Any

from renga.core.variable import Variable
from renga.functions.math.special import special
from renga.functions.on_host import on_host


@on_host
def erfcx(x: Any) -> Variable:
    """``exp(x ** 2) erfc(x)`` without overflow.

    Raises:
        InvalidType: ``x`` is not of floats.
    """
    slope = -2 / math.sqrt(math.pi)
    return special("erfcx", x, lambda x, y: x * y * 2 + slope)
