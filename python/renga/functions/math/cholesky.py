"""Triangular roots of matrices."""

from __future__ import annotations

import numpy

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_floats, check_shape


def cholesky(a: ArrayLike) -> Variable:
    """The lower triangular L with ``L L^T = a``; its gradient is symmetric.

    Shapes:
        a: (n, n), symmetric and positive definite

    Raises:
        InvalidType: ``a`` is not a square matrix of floats.
        numpy.linalg.LinAlgError: it is not positive definite.

    Source: Murray, Differentiation of the Cholesky decomposition, 2016.
    """
    check_floats("cholesky", a)
    check_shape("cholesky", a.ndim == 2 and a.shape[0] == a.shape[1], "(n, n)", a)
    try:
        return _core.ops.cholesky(a)
    except ValueError as error:
        raise numpy.linalg.LinAlgError(str(error)) from None
