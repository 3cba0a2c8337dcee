"""Determinants."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_floats, check_shape


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
