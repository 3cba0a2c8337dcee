"""The piecewise linear sigmoid."""

from __future__ import annotations

from typing import Any

from renga.functions.check import check_floats
from renga.functions.math.clip import clip
from renga.variable import Variable, as_variable


def hard_sigmoid(x: Any) -> Variable:
    """``0.2 x + 0.5`` limited to [0, 1].

    Raises:
        InvalidType: ``x`` is not of floats.
    """
    check_floats("hard_sigmoid", x)
    return clip(as_variable(x) * 0.2 + 0.5, 0.0, 1.0)
