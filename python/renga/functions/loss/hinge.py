"""Loss of a margin between the classes."""

from __future__ import annotations

import numpy

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.array.cast import in_nominal_dtype
from renga.functions.check import (
    array_of,
    check_floats,
    check_shape,
    checked_indices,
)
from renga.functions.loss.reduction import check_reduce
from renga.functions.math.average import average
from renga.functions.on_host import on_host
from renga.utils.type_check import InvalidType


@on_host
def hinge(
    x: ArrayLike, t: ArrayLike, norm: str = "L1", reduce: str = "mean"
) -> Variable:
    """``max(0, 1 - x)`` for the class of the label, ``max(0, 1 + x)`` for the others.

    ``norm="L2"`` squares it. ``reduce="mean"`` divides the sum by N; ``"no"`` keeps one
    loss per element.

    Shapes:
        x: (N, C)
        t: (N,), integers

    Raises:
        NotImplementedError: ``norm`` is unknown.
        ValueError: ``reduce`` is unknown.
        InvalidType: shapes or dtypes do not fit.
        IndexError: a label is not one of the classes.
    """
    if norm not in ("L1", "L2"):
        raise NotImplementedError(f"hinge: expected norm 'L1' or 'L2', got {norm!r}")
    check_reduce("hinge", reduce)
    t = array_of("hinge", "labels", t)
    check_floats("hinge", x)
    check_shape("hinge", x.ndim == 2 and t.shape == x.shape[:1], "(N, C), (N,)", x, t)
    if t.dtype.kind != "i":
        raise InvalidType(f"hinge: expected labels of integers, got {t.dtype}")
    t = checked_indices("hinge", "t", t, x.shape[1])
    sign = numpy.ones(x.shape, x.dtype)
    sign[numpy.arange(len(t)), t] = -1
    loss = _core.ops.relu(_core.ops.multiply(in_nominal_dtype(x), sign) + 1)
    if norm == "L2":
        loss = _core.ops.square(loss)
    return loss if reduce == "no" else average(_core.ops.sum(loss, 1))
