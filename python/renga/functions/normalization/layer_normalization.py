"""Normalization of each sample over its units."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.functions.array.cast import cast
from renga.functions.check import check_floats, check_shape
from renga.functions.normalization.moments import standardized
from renga.variable import Variable


def layer_normalization(x: Any, gamma: Any, beta: Any, eps: float = 1e-5) -> Variable:
    """``(x - mean) / sqrt(variance + eps) gamma + beta``, moments over axis 1.

    Shapes:
        x: (N, C)
        gamma, beta: (C,)

    Raises:
        InvalidType: shapes or dtypes do not fit.

    Source: Ba et al., Layer normalization, 2016.
    """
    check_floats("layer_normalization", x, gamma, beta)
    fits = x.ndim == 2 and gamma.shape == beta.shape == x.shape[1:]
    check_shape("layer_normalization", fits, "(N, C), (C,), (C,)", x, gamma, beta)
    if x.dtype.char == "e":  # squares overflow at 256
        x, gamma, beta = (cast(v, "float32") for v in (x, gamma, beta))
        return cast(layer_normalization(x, gamma, beta, eps), "float16")
    return _core.ops.add(standardized(x, eps) * gamma, beta)
