"""Fourier transforms of complex numbers, given as real and imaginary parts."""

from __future__ import annotations

from typing import Any

import numpy

from renga.core.function_node import FunctionNode
from renga.core.variable import Variable
from renga.functions.check import check_alike, check_shape
from renga.functions.on_host import on_host


@on_host
def fft(x: tuple[Any, Any]) -> tuple[Variable, Variable]:
    """The Fourier transform along the last axis of ``(real, imaginary)``.

    Raises:
        InvalidType: shapes or dtypes differ, or there is no axis.
    """
    return _transform("fft", x)


@on_host
def ifft(x: tuple[Any, Any]) -> tuple[Variable, Variable]:
    """The inverse of the Fourier transform along the last axis.

    Raises:
        InvalidType: shapes or dtypes differ, or there is no axis.
    """
    return _transform("ifft", x)


def _transform(name: str, x: tuple[Any, Any]) -> tuple[Variable, Variable]:
    real, imaginary = x
    check_alike(name, real, imaginary)
    check_shape(name, real.ndim > 0, "1 axis or more", real)
    real, imaginary = _Transform(name).apply((real, imaginary))
    return real, imaginary


class _Transform(FunctionNode):
    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def label(self) -> str:
        return self.name

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        real, imaginary = inputs
        self.shape, self.dtype = real.shape, real.dtype
        double = numpy.empty(real.shape, "D")
        double.real, double.imag = inputs
        y = getattr(numpy.fft, self.name)(double)
        return y.real.astype(real.dtype), y.imag.astype(real.dtype)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        # The transform's matrix F has the transpose F and the inverse conj(F) / n.
        zeros = numpy.zeros(self.shape, self.dtype)
        real, imaginary = (zeros if gy is None else gy for gy in grad_outputs)
        n = self.shape[-1]
        if self.name == "fft":
            gxs = [part * n for part in ifft((real, imaginary))]
        else:
            gxs = [part * (1 / n) for part in fft((real, imaginary))]
        return tuple(gxs[i] for i in target_input_indexes)
