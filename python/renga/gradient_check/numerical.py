"""Derivatives by differences, and points that have none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from renga.core.configuration import using_config
from renga.core.variable import as_array

Arrays = Sequence[Any]

# Steps in units of eps, and the weights of the values there in the derivative.
_TWO = ((-1, -1 / 2), (1, 1 / 2))
_FIVE = ((-1, 1 / 6), (-0.5, -8 / 6), (0, 0), (0.5, 8 / 6), (1, -1 / 6))
_PARABOLA = numpy.vander([step for step, _ in _FIVE], 3)
_MISFIT = numpy.eye(5) - _PARABOLA @ numpy.linalg.pinv(_PARABOLA)
_ROUNDING = 1e-12


class NondifferentiableError(Exception):
    """The function has a kink or a jump within the step of a numerical gradient."""


def numerical_grad(
    f: Callable[[], Arrays],
    inputs: Arrays,
    grad_outputs: Arrays,
    eps: float = 1e-3,
    detect_nondifferentiable: bool = False,
    diff_atol: float = 0,
    diff_rtol: float = 1e-2,
    center_outputs: Arrays | None = None,
) -> list[numpy.ndarray]:
    """Gradients of ``sum(f()[i] * grad_outputs[i])`` by central differences.

    ``f`` takes no arguments and reads ``inputs``, whose elements change one by one. A
    gradient of None leaves its output out. With ``detect_nondifferentiable`` five
    values are used instead of two, and the error is of the fourth order in ``eps``.
    ``center_outputs`` is not used.

    Raises:
        RuntimeError: an input is not of floats.
        TypeError: ``inputs`` is not a tuple or list.
        ValueError: ``eps`` is not positive, or outputs and gradients do not fit.
        NondifferentiableError: detected, if requested: the values around a point are
            finite and not, or an output's fit no parabola within
            ``diff_atol + diff_rtol * range``.
    """
    if not eps > 0:
        raise ValueError(f"numerical_grad: expected a positive eps, got {eps}")
    if not isinstance(inputs, (tuple, list)):
        raise TypeError(f"numerical_grad: expected a tuple, got {type(inputs)}")
    for x in inputs:
        if x.dtype.kind != "f":
            raise RuntimeError(f"numerical_grad: expected floats, got {x.dtype}")
    gys = [None if gy is None else numpy.asarray(gy, "d") for gy in grad_outputs]
    weights = _FIVE if detect_nondifferentiable else _TWO
    gxs = [numpy.zeros(x.shape) for x in inputs]
    sample = _Sampler(f, gys)
    with using_config("type_check", False):
        for i, (x, gx) in enumerate(zip(inputs, gxs)):
            for index in numpy.ndindex(x.shape):
                samples = [sample(x, index, step * eps) for step, _ in weights]
                if detect_nondifferentiable:
                    where = f"i_in: {i}\nx: {x}\nindex: {index}\neps: {eps}\n"
                    _require_smooth(samples, diff_atol, diff_rtol, where)
                pairs = zip(weights, samples)
                gx[index] = sum(w * _dot(ys, gys) for (_, w), ys in pairs) / eps
    return [gx.astype(x.dtype, copy=False) for gx, x in zip(gxs, inputs)]


class _Sampler:
    """Copies of the outputs of ``f`` where one element has moved."""

    def __init__(self, f: Callable[[], Arrays], gys: Arrays) -> None:
        self.f = f
        self.gys = gys
        self.center: Arrays | None = None

    def __call__(self, x: numpy.ndarray, index: tuple[int, ...], step: float) -> Arrays:
        if step == 0:
            self.center = self.center or self.outputs()
            return self.center
        before = x[index]
        x[index] = before + step
        try:
            return self.outputs()
        finally:
            x[index] = before

    def outputs(self) -> Arrays:
        """The outputs, if the gradients fit."""
        ys = [None if y is None else numpy.array(as_array(y), "d") for y in self.f()]
        if len(ys) != len(self.gys):
            raise ValueError(
                f"numerical_grad: expected {len(ys)} output gradients, "
                f"got {len(self.gys)}"
            )
        for i, (y, gy) in enumerate(zip(ys, self.gys)):
            shape = None if y is None else y.shape
            if gy is not None and gy.ndim and shape != gy.shape:
                raise ValueError(
                    f"numerical_grad: expected a gradient of {shape} for output {i}, "
                    f"got {gy.shape}"
                )
        return ys


def _dot(ys: Arrays, gys: Arrays) -> float:
    pairs = zip(ys, gys)
    return sum((y * gy).sum() for y, gy in pairs if y is not None and gy is not None)


def _require_smooth(
    samples: Sequence[Arrays], atol: float, rtol: float, where: str
) -> None:
    outputs = [numpy.stack(ys) for ys in zip(*samples) if ys[0] is not None]
    for i, ys in enumerate(outputs):
        finite = numpy.isfinite(ys)
        if (finite != finite[0]).any():
            raise NondifferentiableError(_kink(i, ys, where))
    if not all(numpy.isfinite(ys).all() for ys in outputs):
        return
    for i, ys in enumerate(outputs):
        flat = ys.reshape(5, -1)
        misfit = numpy.sqrt(((_MISFIT @ flat) ** 2).mean(0))
        limit = atol + rtol * (flat.max(0) - flat.min(0))
        if (misfit > limit + _ROUNDING * numpy.abs(flat).max(0)).any():
            detail = f"diff_atol: {atol}\ndiff_rtol: {rtol}\nmisfit: {misfit}\n"
            raise NondifferentiableError(_kink(i, ys, where + detail))


def _kink(i: int, ys: numpy.ndarray, where: str) -> str:
    steps = ("x-eps", "x-eps/2", "x", "x+eps/2", "x+eps")
    values = "\n".join(f"y[{step}]: {y}" for step, y in zip(steps, ys))
    return (
        "numerical_grad: expected a differentiable function, got a non-differentiable "
        f"point\n{where}i_out: {i}\nymax: {ys.max(0)}\nymin: {ys.min(0)}\n{values}"
    )
