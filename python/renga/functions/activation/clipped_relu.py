"""Rectifiers with an upper limit."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.functions.check import check_floats
from renga.variable import Variable


def clipped_relu(x: Any, z: float = 20.0) -> Variable:
    """``min(max(x, 0), z)``.

    Raises:
        TypeError: ``z`` is not a number.
        InvalidType: ``x`` is not of floats.
    """
    check_floats("clipped_relu", x)
    # The limit first: where both are equal the gradient is then 0, as it is at 0.
    return _core.ops.minimum(numpy.asarray(float(z), x.dtype), _core.ops.relu(x))


def relu6(x: Any) -> Variable:
    """``min(max(x, 0), 6)``.

    Raises:
        InvalidType: ``x`` is not of floats.
    """
    return clipped_relu(x, 6.0)
