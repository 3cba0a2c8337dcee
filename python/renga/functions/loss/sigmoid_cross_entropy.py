"""Cross entropy of binary labels."""

from __future__ import annotations

import numpy

from renga import _core
from renga.core.around_call import reads_elements, tell_counted
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.array.cast import in_nominal_dtype
from renga.functions.check import array_of, check_arrays, checked_indices
from renga.functions.loss.reduction import check_reduce
from renga.functions.on_host import on_host
from renga.utils.type_check import InvalidType


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
