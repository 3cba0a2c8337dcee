"""Comparison of arrays in tests."""

from __future__ import annotations

from typing import Any

import numpy

from renga.variable import as_array


def assert_allclose(
    x: Any, y: Any, atol: float = 1e-5, rtol: float = 1e-4, verbose: bool = True
) -> None:
    """Raises AssertionError unless ``|x - y| <= atol + rtol * |y|`` everywhere.

    ``x`` and ``y`` are arrays, numbers or Variables.
    """
    numpy.testing.assert_allclose(
        as_array(x), as_array(y), atol=atol, rtol=rtol, verbose=verbose
    )
