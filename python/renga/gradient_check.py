"""Numerical checks of gradients.

A gradient is checked along random directions: the derivative of the outputs, weighted
by ``y_grad``, along a unit vector of the inputs is one number, which costs two forward
passes however many inputs there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from renga import _core
from renga.function_node import grad
from renga.testing.array import assert_allclose
from renga.variable import as_array, as_variable

Arrays = Sequence[Any]


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
) -> tuple[numpy.ndarray, ...]:
    """Gradients of ``sum(f()[i] * grad_outputs[i])`` by central differences.

    ``f`` takes no arguments and reads ``inputs``, whose elements change one by one.

    Raises:
        NondifferentiableError: detected, if requested: the values near a point fit no
            parabola within ``diff_atol + diff_rtol * range``.
    """

    def weighted() -> numpy.ndarray:
        pairs = zip(f(), grad_outputs)
        terms = [
            _flat(y) * _flat(g) for y, g in pairs if y is not None and g is not None
        ]
        return numpy.concatenate([numpy.zeros(1), *terms])

    tolerance = (diff_atol, diff_rtol) if detect_nondifferentiable else ()
    gxs = tuple(numpy.zeros(x.shape, x.dtype) for x in inputs)
    for x, gx in zip(inputs, gxs):
        for i in numpy.ndindex(x.shape):
            gx[i] = _slope(weighted, x, i, eps, tolerance)
    return gxs


def _slope(
    f: Callable[[], numpy.ndarray],
    x: numpy.ndarray,
    i: tuple[int, ...],
    eps: float,
    tolerance: tuple[float, ...],
) -> float:
    center = x[i]

    def at(step: float) -> numpy.ndarray:
        x[i] = center + step * eps
        y = f()
        x[i] = center
        return y

    below, above = at(-1), at(1)
    if tolerance:
        _require_smooth(
            numpy.stack([below, at(-0.5), at(0), at(0.5), above]), i, *tolerance
        )
    return (above - below).sum() / (2 * eps)


def _require_smooth(
    ys: numpy.ndarray, i: tuple[int, ...], atol: float, rtol: float
) -> None:
    steps = numpy.array([-1, -0.5, 0, 0.5, 1])
    parabola = numpy.vander(steps, 3)
    misfit = ys - parabola @ (numpy.linalg.pinv(parabola) @ ys)
    limit = atol + rtol * (ys.max(0) - ys.min(0))
    if not (numpy.abs(misfit) <= limit + 1e-12 * numpy.abs(ys).max(0)).all():
        raise NondifferentiableError(
            f"numerical_grad: expected a smooth function at {i}, got the values "
            f"{ys[:, numpy.abs(misfit).max(0).argmax()]} around it"
        )


def check_backward(
    func: Callable,
    x_data: Any,
    y_grad: Any,
    params: Any = (),
    eps: float = 1e-3,
    atol: float = 1e-5,
    rtol: float = 1e-4,
    no_grads: Sequence[bool] | None = None,
    dtype: Any = None,
    detect_nondifferentiable: bool = False,
) -> None:
    """Checks the gradients of ``func`` at ``x_data`` against numerical ones.

    ``params`` are Parameters that ``func`` also depends on; with ``no_grads[i]`` input
    i has no gradient; numerical gradients are computed in ``dtype`` if given.

    Raises:
        AssertionError: they differ, or an input that should not have one has one.
        ValueError: ``func`` returned no Variable with a graph.
        NondifferentiableError: detected, if requested: there is a kink within ``eps``.
    """
    x_data, y_grad, params = map(_tuple, (x_data, y_grad, params))
    skip = _skipped(x_data, no_grads)
    xs = tuple(_core.Variable(x, requires_grad=not s) for x, s in zip(x_data, skip))
    ys = _tuple(func(*xs))
    y_grad = _checked_gradients(ys, y_grad)
    moving = [x for x, s in zip(xs, skip) if not s] + list(params)
    gxs = _gradients(ys, moving, y_grad)

    line = _Line(func, x_data, skip, params, dtype)
    step = numpy.zeros(())
    (expected,) = numerical_grad(
        lambda: line.outputs(step), (step,), y_grad, eps, detect_nondifferentiable, 0
    )
    pairs = zip(gxs, line.directions)
    actual = sum(_flat(gx) @ d.ravel() for gx, d in pairs if gx is not None)
    assert_allclose(actual, expected, atol=atol, rtol=rtol)


class _Line:
    """The function along one random direction of its inputs and parameters."""

    def __init__(
        self,
        func: Callable,
        x_data: Arrays,
        skip: Sequence[bool],
        params: Arrays,
        dtype: Any,
    ) -> None:
        self.func = func
        self.skip = skip
        self.params = params
        self.dtype = dtype
        self.x_data = [x if s else self._cast(x) for x, s in zip(x_data, skip)]
        self.p_data = [p.array for p in params]
        moving = [x for x, s in zip(x_data, skip) if not s] + self.p_data
        directions = [numpy.random.normal(size=x.shape) for x in moving]
        length = numpy.sqrt(sum((d**2).sum() for d in directions))
        self.directions = [d / length for d in directions]

    def outputs(self, step: numpy.ndarray) -> list[Any]:
        """The function's arrays at the point ``step`` along the line."""
        directions = iter(self.directions)

        def moved(x: numpy.ndarray) -> numpy.ndarray:
            x = self._cast(x)
            return numpy.asarray(x + step * next(directions), x.dtype)

        # As variables that require gradients: the function may take gradients itself.
        xs = [
            _core.Variable(x if s else moved(x), requires_grad=not s)
            for x, s in zip(self.x_data, self.skip)
        ]
        try:
            for p, x in zip(self.params, self.p_data):
                p.array = moved(x)
            return [as_array(y) for y in _tuple(self.func(*xs))]
        finally:
            for p, x in zip(self.params, self.p_data):
                p.array = x

    def _cast(self, x: numpy.ndarray) -> numpy.ndarray:
        return x if self.dtype is None else x.astype(self.dtype, copy=False)


def check_double_backward(
    func: Callable,
    x_data: Any,
    y_grad: Any,
    x_grad_grad: Any,
    params: Any = (),
    params_grad_grad: Any = (),
    eps: float = 1e-3,
    atol: float = 1e-4,
    rtol: float = 1e-3,
    no_grads: Sequence[bool] | None = None,
    dtype: Any = None,
    detect_nondifferentiable: bool = False,
) -> None:
    """Checks the gradients of the gradients of ``func`` against numerical ones.

    Raises:
        AssertionError: they differ.
        NondifferentiableError: detected, if requested: there is a kink within ``eps``.
    """
    x_data, y_grad, params = map(_tuple, (x_data, y_grad, params))
    skip = _skipped(x_data, no_grads)
    n = len(x_data)

    def first_order(*inputs: Any) -> tuple[Any, ...]:
        xs, gys = inputs[:n], inputs[n:]
        moving = [x for x, s in zip(xs, skip) if not s] + list(params)
        gxs = grad(_tuple(func(*xs)), moving, gys, enable_double_backprop=True)
        return tuple(gx for gx in gxs if gx is not None)

    check_backward(
        first_order,
        x_data + y_grad,
        _tuple(x_grad_grad) + _tuple(params_grad_grad),
        params,
        eps,
        atol,
        rtol,
        skip + [False] * len(y_grad),
        dtype,
        detect_nondifferentiable,
    )


def _tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (list, tuple)) else (x,)


def _flat(x: Any) -> numpy.ndarray:
    return numpy.asarray(as_array(x), numpy.float64).ravel()


def _skipped(x_data: Arrays, no_grads: Sequence[bool] | None) -> list[bool]:
    if no_grads is None:
        return [x.dtype.kind != "f" for x in x_data]
    return list(no_grads)


def _gradients(ys: Arrays, xs: Arrays, gys: Arrays) -> list[Any]:
    started = [(y, as_variable(g)) for y, g in zip(ys, gys) if g is not None]
    return grad([y for y, _ in started], xs, [g for _, g in started])


def _checked_gradients(ys: Arrays, y_grad: Arrays) -> Arrays:
    if len(y_grad) == 1 and y_grad[0] is None:
        y_grad = tuple(numpy.ones(y.shape, y.dtype) for y in ys)
    if len(ys) != len(y_grad):
        raise ValueError(
            f"check_backward: expected {len(ys)} output gradients, got {len(y_grad)}"
        )
    for y, g in zip(ys, y_grad):
        if g is not None and (y.shape, y.dtype) != (g.shape, g.dtype):
            raise ValueError(
                f"check_backward: expected an output gradient of {y.shape} {y.dtype}, "
                f"got {g.shape} {g.dtype}"
            )
    return y_grad
