"""Cross entropy of smoothed labels."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.core.variable import Variable, as_variable
from renga.functions.check import array_of, check_arrays
from renga.functions.loss.softmax_cross_entropy import softmax_cross_entropy
from renga.utils.extents import check_real


def label_smoothing_cross_entropy(
    x: Any, t: Any, epsilon: float = 0.1, ignore_label: int = -1
) -> Variable:
    """``softmax_cross_entropy`` with probability ``epsilon`` spread over all classes.

    The mean over samples, except those labelled ``ignore_label``, of
    ``-(1 - epsilon) log p[t] - epsilon mean(log p)`` with ``p = softmax(x)``.

    Shapes:
        x: (N, C, …)
        t: (N, …) integers

    Raises:
        InvalidType: shapes or dtypes do not fit.
        TypeError: epsilon is not a number.
        ValueError: epsilon is not in [0, 1].

    Source: Szegedy et al., CVPR 2016.
    """
    epsilon = check_real("label_smoothing_cross_entropy", "epsilon", epsilon)
    if not 0 <= epsilon <= 1:
        raise ValueError(
            f"label_smoothing_cross_entropy: expected epsilon in [0, 1], got {epsilon}"
        )
    check_arrays("label_smoothing_cross_entropy", x)
    x, t = as_variable(x), array_of("label_smoothing_cross_entropy", "labels", t)
    sharp = softmax_cross_entropy(x, t, ignore_label=ignore_label)
    taken = t != ignore_label
    count = max(1, int(taken.sum()))
    log_p = _core.ops.log_softmax(x, 1)
    weight = (taken / (count * x.shape[1])).astype(x.dtype)[:, None]
    spread = -_core.ops.sum(log_p * weight)
    return (1 - epsilon) * sharp + epsilon * spread
