"""Numerical checks of gradients.

A gradient is checked along a random direction: the derivative of the outputs, weighted
by ``y_grad``, along a unit vector of the inputs is one number, which costs two forward
passes however many inputs there are.
"""

from __future__ import annotations

import warnings

from renga.core.types import Array
from renga.gradient_check.checks import (
    check_backward as check_backward,
    check_double_backward as check_double_backward,
)
from renga.gradient_check.numerical import (
    NondifferentiableError as NondifferentiableError,
    numerical_grad as numerical_grad,
)
from renga.testing.array import assert_allclose as _assert_allclose


def assert_allclose(
    x: Array, y: Array, atol: float = 1e-5, rtol: float = 1e-4, verbose: bool = True
) -> None:
    """``testing.assert_allclose``, with a DeprecationWarning."""
    warnings.warn(
        "gradient_check.assert_allclose: use testing.assert_allclose",
        DeprecationWarning,
        stacklevel=2,
    )
    _assert_allclose(x, y, atol, rtol, verbose)
