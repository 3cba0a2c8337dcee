"""Inverse matrices."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_arrays, check_floats, check_shape


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
