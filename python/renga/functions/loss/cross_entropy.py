"""Cross entropies of classes and of independent labels."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.core.around_call import reads_elements, tell_counted
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_array, as_variable
from renga.functions.array.cast import in_nominal_dtype, promoted
from renga.functions.check import array_of, check_arrays, checked_indices
from renga.functions.loss.reduction import check_reduce
from renga.functions.math.average import average
from renga.functions.on_host import on_host
from renga.utils.argument import check_choice
from renga.utils.extents import check_real
from renga.utils.type_check import InvalidType


def softmax_cross_entropy(
    x: ArrayLike,
    t: ArrayLike,
    normalize: bool = True,
    cache_score: bool = True,
    class_weight: ArrayLike | None = None,
    ignore_label: int | None = -1,
    reduce: str = "mean",
    enable_double_backprop: bool = False,
    soft_target_loss: str = "cross-entropy",
) -> Variable:
    """``-log softmax(x)[t]``, times the weight of the class.

    Samples labelled ``ignore_label`` are ignored. ``reduce="mean"`` divides the sum by
    the number of the others with ``normalize``, else by N; ``"no"`` keeps each.
    ``cache_score`` and ``enable_double_backprop`` have no effect: scores are cached,
    and the result can be differentiated twice.

    If ``t`` holds probabilities, ``soft_target_loss`` is "cross-entropy" or
    "kl-divergence", and the mean is over all samples; as in Chainer, ``normalize``,
    ``class_weight`` and ``ignore_label`` have no effect then, and ``t`` gets no
    gradient.

    Shapes:
        x: (N, C, …)
        t: (N, …) integers, or (N, C, …) probabilities
        class_weight: (C,)

    Raises:
        InvalidType: shapes or dtypes do not fit.
        ValueError: an option has an unknown value.
    """
    check_arrays("softmax_cross_entropy", x)
    check_reduce("softmax_cross_entropy", reduce)
    if class_weight is not None:
        _check_class_weight(class_weight)
        class_weight = as_array(class_weight).astype(x.dtype, copy=False)
    what = "softmax_cross_entropy: expected soft_target_loss"
    check_choice(what, soft_target_loss, "cross-entropy", "kl-divergence")
    if hasattr(t, "dtype") and t.dtype.kind == "f":
        loss = _soft_loss(x, t, soft_target_loss)
        if reduce == "no":
            return loss
        return _core.ops.sum(loss) * (1 / max(loss.size, 1))
    if ignore_label is None:
        ignore_label = numpy.iinfo(numpy.int64).min  # no label
    t = array_of("softmax_cross_entropy", "labels", t)
    if reduce == "no":
        return _core.ops.softmax_nll(x, t, class_weight, ignore_label)
    if normalize:
        tell_counted("softmax_cross_entropy", lambda: t != ignore_label)
    return _core.ops.softmax_cross_entropy(x, t, normalize, class_weight, ignore_label)


def _check_class_weight(class_weight: Any) -> None:
    if not isinstance(class_weight, numpy.ndarray) or class_weight.ndim != 1:
        raise ValueError(
            "softmax_cross_entropy: expected class_weight as an array of one axis, got "
            f"{type(class_weight).__name__}"
        )
    if class_weight.dtype.kind != "f":
        raise ValueError(
            "softmax_cross_entropy: expected class_weight of floats, got "
            f"{class_weight.dtype}"
        )


@reads_elements
@on_host
def _soft_loss(x: Any, t: Any, kind: str) -> Variable:
    t = array_of("softmax_cross_entropy", "targets", t)
    if x.shape != t.shape:
        raise InvalidType(
            "softmax_cross_entropy: expected probabilities of the shape of x, got "
            f"{t.shape} for {x.shape}"
        )
    ops = _core.ops
    log_p, t = promoted(ops.log_softmax(in_nominal_dtype(x), 1), t)
    loss = -ops.sum(ops.multiply(t, log_p), 1)
    if kind == "cross-entropy":
        return loss
    # t log t is 0 at 0, where the logarithm is not finite.
    log_t = ops.log(ops.maximum(t, _smallest_like(t)))
    return ops.add(loss, ops.sum(ops.multiply(t, log_t), 1))


def _smallest_like(t: Any) -> numpy.ndarray:
    return numpy.full(t.shape, numpy.finfo(t.dtype).tiny, t.dtype)


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


@reads_elements
@on_host
def sigmoid_cross_entropy(
    x: ArrayLike, t: ArrayLike, normalize: bool = True, reduce: str = "mean"
) -> Variable:
    """``-log sigmoid(x)`` where the label is 1, ``-log(1 - sigmoid(x))`` where it is 0.

    Elements labelled -1 are ignored. ``reduce="mean"`` divides the sum by the number of
    the others with ``normalize``, else by N; ``"no"`` keeps one loss per element.

    Shapes:
        x, t: (N, …), t of integers

    Raises:
        InvalidType: shapes or dtypes do not fit.
        ValueError: ``reduce`` is unknown.
        IndexError: a label is not -1, 0 or 1.
    """
    check_reduce("sigmoid_cross_entropy", reduce)
    check_arrays("sigmoid_cross_entropy", x)
    t = array_of("sigmoid_cross_entropy", "labels", t)
    if x.dtype.kind != "f" or t.dtype.kind != "i" or x.shape != t.shape:
        raise InvalidType(
            "sigmoid_cross_entropy: expected floats and integers of one shape, got "
            f"{x.shape} {x.dtype} and {t.shape} {t.dtype}"
        )
    least, most = (t.min(), t.max()) if t.size else (0, 0)
    if least < -1 or most > 1:
        checked_indices("sigmoid_cross_entropy", "t", t, 2, -1)
    loss = _core.ops.sigmoid_nll(in_nominal_dtype(x), t)
    if reduce == "no":
        return loss
    if normalize:
        tell_counted("sigmoid_cross_entropy", lambda: t != -1)
    used = t.size if least >= 0 else numpy.count_nonzero(t != -1)
    count = used if normalize else len(t)
    return _core.ops.sum(loss) * (1 / max(count, 1))
