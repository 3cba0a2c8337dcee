"""Inverse matrices."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.core.function_node import FunctionNode
from renga.core.variable import Variable
from renga.functions.check import check_arrays, check_floats, check_shape


def inv(a: Any) -> Variable:
    """The inverse of a matrix.

    Shapes:
        a: (n, n)

    Raises:
        InvalidType: ``a`` is not a square matrix of floats.
        ValueError: it is singular.
    """
    check_arrays("inv", a)
    check_shape("inv", a.ndim == 2 and a.shape[0] == a.shape[1], "(n, n)", a)
    return inverse("inv", a)


def batch_inv(a: Any) -> Variable:
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
    return inverse("batch_inv", a)


def inverse(name: str, a: Any) -> Variable:
    """The inverses of the matrices in the last two axes."""
    check_floats(name, a)
    return _Inverse(name).apply((a,))[0]


class _Inverse(FunctionNode):
    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def label(self) -> str:
        return self.name

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        (a,) = inputs
        self.retain_outputs((0,))
        wide = a.astype("f") if a.dtype.char == "e" else a
        try:
            y = numpy.linalg.inv(wide)
        except numpy.linalg.LinAlgError:
            raise ValueError(
                f"{self.name}: expected regular matrices, got a singular one"
            ) from None
        return (y.astype(a.dtype, copy=False),)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        (y,) = self.get_retained_outputs()
        matmul = _core.ops.matmul
        return (-matmul(matmul(y, grad_outputs[0], transa=True), y, transb=True),)
