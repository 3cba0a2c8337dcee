"""Products of the matrices of two batches."""

from __future__ import annotations

import warnings

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_floats, check_shape


def batch_matmul(
    a: ArrayLike, b: ArrayLike, transa: bool = False, transb: bool = False
) -> Variable:
    """The product of each pair of matrices; samples of one axis are columns.

    Deprecated: ``matmul`` does the same.

    Shapes:
        a: (N, m, k), or (N, m) for k = 1
        b: (N, k, n), or (N, k) for n = 1
        return: (N, m, n)

    Raises:
        InvalidType: shapes or dtypes do not fit.
    """
    warnings.warn(
        "batch_matmul is deprecated; use matmul instead.",
        DeprecationWarning,
        stacklevel=2,
    )
    check_floats("batch_matmul", a, b)
    fits = {a.ndim, b.ndim} <= {2, 3} and a.shape[0] == b.shape[0]
    check_shape("batch_matmul", fits, "(N, m, k) and (N, k, n)", a, b)
    a, b = (_core.ops.reshape(x, (*x.shape, 1)[:3]) for x in (a, b))
    return _core.ops.matmul(a, b, transa, transb)
