"""The logarithm of the normal distribution function."""

from __future__ import annotations

import math
from typing import Any

from renga import _core
from renga.core.variable import Variable
from renga.functions.math.special import special
from renga.functions.on_host import on_host

ROOT = math.sqrt(2 * math.pi)


@on_host
def log_ndtr(x: Any) -> Variable:
    """The logarithm of ``ndtr``, exact where that is near 0 or 1.

    Raises:
        InvalidType: ``x`` is not of floats.
    """
    exp, square = _core.ops.exp, _core.ops.square
    return special("log_ndtr", x, lambda x, y: exp(square(x) * -0.5 - y) * (1 / ROOT))
