"""Coefficient of determination."""

from __future__ import annotations

import numpy

from renga.core.around_call import reads_elements
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_array, as_variable
from renga.functions.check import check_floats, check_shape
from renga.functions.on_host import on_host


@reads_elements
@on_host
def r2_score(
    pred: ArrayLike,
    true: ArrayLike,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> Variable:
    """``1 - sum((pred - true) ** 2) / sum((true - mean) ** 2)``; it has no gradient.

    An output whose true values are all equal scores 0. ``multioutput="raw_values"``
    keeps one score per output.

    Shapes:
        pred, true: (N,) or (N, K)
        return: (), or (K,)

    Raises:
        InvalidType: shapes differ, or arrays are not of floats.
        ValueError: no such ``multioutput``.
        NotImplementedError: there are weights.
    """
    if sample_weight is not None:
        raise NotImplementedError("r2_score: expected no sample_weight")
    if multioutput not in ("uniform_average", "raw_values"):
        raise ValueError(
            "r2_score: expected multioutput 'uniform_average' or 'raw_values', got "
            f"{multioutput!r}"
        )
    check_floats("r2_score", pred)
    check_floats("r2_score", true)
    check_shape("r2_score", pred.shape == true.shape, "one shape", pred, true)
    dtype = pred.dtype
    pred, true = (as_array(x).astype("d") for x in (pred, true))
    missed = ((pred - true) ** 2).sum(0)
    total = ((true - true.mean(0)) ** 2).sum(0)
    # The mean of equal numbers is rounded, and so their total need not be 0.
    varies = (true != true[:1]).any(0) & (total != 0)
    score = numpy.where(varies, 1 - missed / numpy.where(varies, total, 1), 0)
    if multioutput == "uniform_average":
        score = score.mean()
    return as_variable(numpy.asarray(score, dtype))
