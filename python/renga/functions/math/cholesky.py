"""Triangular roots of matrices."""

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
def cholesky(a: Any) -> Variable:
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
    return _Cholesky().apply((a,))[0]


class _Cholesky(FunctionNode):
    @property
    def label(self) -> str:
        return "cholesky"

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        (a,) = inputs
        self.retain_outputs((0,))
        wide = a.astype("f") if a.dtype.char == "e" else a
        return (numpy.linalg.cholesky(wide).astype(a.dtype, copy=False),)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        (y,) = self.get_retained_outputs()
        matmul, n = _core.ops.matmul, y.shape[0]
        half = numpy.tril(numpy.ones((n, n), y.dtype)) - numpy.eye(n, dtype=y.dtype) / 2
        middle = matmul(y, grad_outputs[0], transa=True) * half
        root = inverse("cholesky", y)
        gx = matmul(matmul(root, middle, transa=True), root)
        return ((gx + _core.ops.transpose(gx)) * 0.5,)
