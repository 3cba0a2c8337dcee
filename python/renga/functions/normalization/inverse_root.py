"""Inverse square roots of matrices."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.core.function_node import FunctionNode
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable


def inverse_root(a: ArrayLike) -> Variable:
    """P with ``P P a = 1`` for symmetric positive matrices in the last two axes."""
    return _InverseRoot().apply((a,))[0]


class _InverseRoot(FunctionNode):
    label = "InverseRoot"

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        (a,) = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        values, vectors = numpy.linalg.eigh(a)
        scaled = vectors / numpy.sqrt(values)[..., None, :]
        return ((scaled @ numpy.swapaxes(vectors, -1, -2)).astype(a.dtype),)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        # With Q = a P, the root: dP = -P dQ P, and dQ Q + Q dQ = da.
        matmul = _core.ops.matmul
        (a,), (p,), (gp,) = (
            self.get_retained_inputs(),
            self.get_retained_outputs(),
            grad_outputs,
        )
        gq = -matmul(matmul(p, gp), p)
        return _Lyapunov().apply((matmul(a, p), gq))


class _Lyapunov(FunctionNode):
    """X with ``q X + X q = c`` for symmetric positive q."""

    label = "Lyapunov"

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        q, c = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        values, vectors = numpy.linalg.eigh((q + numpy.swapaxes(q, -1, -2)) / 2)
        back = numpy.swapaxes(vectors, -1, -2)
        inner = back @ c @ vectors / (values[..., :, None] + values[..., None, :])
        return ((vectors @ inner @ back).astype(c.dtype),)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Variable | None, ...]:
        matmul = _core.ops.matmul
        (q,), (x,) = self.get_retained_inputs(), self.get_retained_outputs()
        (gc,) = _Lyapunov().apply((q, grad_outputs[0]))
        gq = -(matmul(gc, x, transb=True) + matmul(x, gc, transa=True))
        return tuple((gq, gc)[i] for i in target_input_indexes)
