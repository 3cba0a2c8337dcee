"""Cross entropy of smoothed labels."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_variable
from renga.functions.check import array_of, check_arrays
from renga.functions.loss.softmax_cross_entropy import softmax_cross_entropy
from renga.functions.math.average import average
from renga.utils.extents import check_real


def label_smoothing_cross_entropy(
    x: ArrayLike, t: ArrayLike, epsilon: float = 0.1, ignore_label: int = -1
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
    loss = softmax_cross_entropy(x, t, ignore_label=ignore_label)
    # -mean(log p) is by x[t] - mean(x) more than -log p[t].
    ops, axes = _core.ops, [0, *range(2, x.ndim), 1]
    scores = ops.reshape(ops.transpose(x, axes), (t.size, x.shape[1]))
    taken = t.ravel() != ignore_label
    picked = ops.select_item(scores, t.ravel() * taken)
    weight = (taken / max(1, int(taken.sum()))).astype(x.dtype)
    more = ops.sum((picked - average(scores, 1)) * weight)
    return loss + epsilon * more
