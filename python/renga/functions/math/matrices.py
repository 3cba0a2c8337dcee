"""Determinants, inverses, factors and products of matrices."""

from __future__ import annotations

import warnings

import numpy

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_arrays, check_floats, check_shape


def det(a: ArrayLike) -> Variable:
    """The determinant of a matrix.

    Shapes:
        a: (n, n)
        return: ()

    Raises:
        InvalidType: ``a`` is not a square matrix of floats.
        ValueError: in backward, when ``a`` is singular.
    """
    check_floats("det", a)
    check_shape("det", a.ndim == 2 and a.shape[0] == a.shape[1], "(n, n)", a)
    return _core.ops.det(a)


def batch_det(a: ArrayLike) -> Variable:
    """The determinant of each matrix of a batch.

    Shapes:
        a: (N, n, n)
        return: (N,)

    Raises:
        InvalidType: ``a`` is not a batch of square matrices of floats.
        ValueError: in backward, when one is singular.
    """
    check_floats("batch_det", a)
    fits = a.ndim == 3 and a.shape[1] == a.shape[2]
    check_shape("batch_det", fits, "(N, n, n)", a)
    return _core.ops.det(a)


def inv(a: ArrayLike) -> Variable:
    """The inverse of a matrix.

    Shapes:
        a: (n, n)

    Raises:
        InvalidType: ``a`` is not a square matrix of floats.
        ValueError: it is singular.
    """
    check_arrays("inv", a)
    check_shape("inv", a.ndim == 2 and a.shape[0] == a.shape[1], "(n, n)", a)
    check_floats("inv", a)
    return _core.ops.inv(a)


def batch_inv(a: ArrayLike) -> Variable:
    """The inverse of each matrix of a batch.

    Shapes:
        a: (N, n, n)

    Raises:
        InvalidType: ``a`` is not a batch of square matrices of floats.
        ValueError: one is singular.
    """
    check_arrays("batch_inv", a)
    fits = a.ndim == 3 and a.shape[1] == a.shape[2]
    check_shape("batch_inv", fits, "(N, n, n)", a)
    check_floats("batch_inv", a)
    return _core.ops.inv(a)


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
