"""Determinants."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.core.function_node import FunctionNode
from renga.core.variable import Variable
from renga.functions.check import check_floats, check_shape
from renga.functions.math.inv import inverse
from renga.functions.on_host import on_host


@on_host
def det(a: Any) -> Variable:
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
    return _Determinant().apply((a,))[0]


@on_host
def batch_det(a: Any) -> Variable:
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
    return _Determinant().apply((a,))[0]


class _Determinant(FunctionNode):
    @property
    def label(self) -> str:
        return "det"

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        (a,) = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        wide = a.astype("f") if a.dtype.char == "e" else a
        return (numpy.asarray(numpy.linalg.det(wide), a.dtype),)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        (a,) = self.get_retained_inputs()
        (y,) = self.get_retained_outputs()
        slope = _core.ops.reshape(grad_outputs[0] * y, (*y.shape, 1, 1))
        cofactors = _core.ops.swapaxes(inverse("det", a), -1, -2)
        return (_core.ops.multiply(slope, cofactors),)
