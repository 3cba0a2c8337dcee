"""Gradients of functions against numerical ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from renga import _core
from renga.core.gradients import grad
from renga.core.types import ArrayLike, DTypeLike
from renga.core.variable import Variable, as_array, as_variable
from renga.gradient_check.numerical import Arrays, numerical_grad
from renga.testing.array import assert_allclose


def check_backward(
    func: Callable,
    x_data: ArrayLike | Sequence[ArrayLike | None] | None,
    y_grad: ArrayLike | Sequence[ArrayLike | None] | None,
    params: ArrayLike | Sequence[ArrayLike | None] | None = (),
    eps: float = 1e-3,
    atol: float = 1e-5,
    rtol: float = 1e-4,
    no_grads: Sequence[bool] | None = None,
    dtype: DTypeLike | None = None,
    detect_nondifferentiable: bool = False,
) -> None:
    """Checks the gradients of ``func`` at ``x_data`` against numerical ones.

    ``params`` are Parameters that ``func`` also depends on; with ``no_grads[i]`` input
    i has no gradient, as those of integers; numerical gradients are computed in
    ``dtype`` if given. ``y_grad`` may be None for a loss without axes.

    Raises:
        AssertionError: they differ.
        RuntimeError: an input that should not have a gradient has one.
        ValueError: gradients, ``no_grads`` or ``dtype`` do not fit.
        NondifferentiableError: detected, if requested: there is a kink within ``eps``.
    """
    x_data, params = _tuple(x_data), _tuple(params)
    if dtype is not None and numpy.dtype(dtype).kind != "f":
        raise ValueError(f"check_backward: expected a float dtype, got {dtype}")
    skip = _skipped(x_data, no_grads)
    xs = tuple(map(_leaf, x_data))
    # The first call may give parameters their shapes.
    ys = _tuple(func(*xs))
    y_grad = _checked_gradients(ys, y_grad)
    gxs = _gradients(ys, [*xs, *params], y_grad)
    for i, no_grad in enumerate(skip):
        if no_grad and gxs[i] is not None:
            raise RuntimeError(f"check_backward: expected no gradient of input {i}")

    line = _Line(func, x_data, skip, params, dtype)
    step = numpy.zeros(())
    gys = [None if y is None else gy for y, gy in zip(ys, y_grad)]
    (numeric,) = numerical_grad(
        lambda: line.outputs(step), (step,), gys, eps, detect_nondifferentiable, 0, rtol
    )
    moving = [gx for gx, s in zip(gxs, skip) if not s] + gxs[len(xs) :]
    pairs = zip(moving, line.directions)
    backward = sum(_flat(gx) @ d.ravel() for gx, d in pairs if gx is not None)
    try:
        assert_allclose(numeric, backward, atol=atol, rtol=rtol)
    except AssertionError as error:
        raise AssertionError(
            f"check_backward: gradients differ (eps={eps} atol={atol} rtol={rtol})\n"
            + _listed("inputs", x_data)
            + _listed("grad_outputs", y_grad)
            + _listed("directions", line.directions)
            + f"gradients (numeric):  {numeric}\ngradients (backward): {backward}\n"
            f"x: numeric gradient, y: backward gradient\n{error}"
        ) from error


class _Line:
    """The function along one random direction of its inputs and parameters."""

    def __init__(
        self,
        func: Callable,
        x_data: Arrays,
        skip: Sequence[bool],
        params: Arrays,
        dtype: DTypeLike | None,
    ) -> None:
        self.func = func
        self.skip = skip
        self.params = params
        self.dtype = dtype
        self.x_data = [self._cast(x) for x in x_data]
        self.p_data = [p.array for p in params]
        moving = [x for x, s in zip(x_data, skip) if not s] + self.p_data
        self.directions = unit_vectors([x.shape for x in moving])

    def outputs(self, step: numpy.ndarray) -> list[Any]:
        """The function's arrays at the point ``step`` along the line."""
        directions = iter(self.directions)

        def moved(x: numpy.ndarray) -> numpy.ndarray:
            x = self._cast(x)
            return numpy.asarray(x + step * next(directions), x.dtype)

        # The inputs are variables that require gradients: the function may take
        # gradients itself.
        xs = [_leaf(x if s else moved(x)) for x, s in zip(self.x_data, self.skip)]
        try:
            for p, x in zip(self.params, self.p_data):
                p.array = moved(x)
            ys = _tuple(self.func(*xs))
            return [None if y is None else as_array(y) for y in ys]
        finally:
            for p, x in zip(self.params, self.p_data):
                p.array = x

    def _cast(self, x: Any) -> Any:
        if self.dtype is None or x is None or x.dtype.kind != "f":
            return x
        return x.astype(self.dtype, copy=False)


def unit_vectors(shapes: Sequence[tuple[int, ...]]) -> list[numpy.ndarray]:
    """A random unit vector in pieces, none of whose elements is close to 0.

    A hundredth of its squared length is spread evenly over the elements, so that a
    gradient that is wrong in a single element is detected.
    """
    pieces = [numpy.random.normal(size=shape) for shape in shapes]
    n = sum(d.size for d in pieces)
    length2 = sum((d**2).sum() for d in pieces)
    return [
        numpy.copysign(numpy.sqrt(0.99 / length2 * d**2 + 0.01 / n), d) if n else d
        for d in pieces
    ]


def check_double_backward(
    func: Callable,
    x_data: ArrayLike | Sequence[ArrayLike | None] | None,
    y_grad: ArrayLike | Sequence[ArrayLike | None] | None,
    x_grad_grad: ArrayLike | Sequence[ArrayLike | None] | None,
    params: ArrayLike | Sequence[ArrayLike | None] | None = (),
    params_grad_grad: ArrayLike | Sequence[ArrayLike | None] | None = (),
    eps: float = 1e-3,
    atol: float = 1e-4,
    rtol: float = 1e-3,
    no_grads: Sequence[bool] | None = None,
    dtype: DTypeLike | None = None,
    detect_nondifferentiable: bool = False,
) -> None:
    """Checks the gradients of the gradients of ``func`` against numerical ones.

    ``x_grad_grad`` has an array for each input of floats, ``no_grads`` an entry for
    each of ``x_data`` and ``y_grad``.

    Raises:
        AssertionError: they differ.
        RuntimeError, ValueError: as ``check_backward``.
        NondifferentiableError: detected, if requested: there is a kink within ``eps``.
    """
    x_data, y_grad, params = map(_tuple, (x_data, y_grad, params))
    second = _tuple(x_grad_grad) + _tuple(params_grad_grad)
    n = len(x_data)

    def first_order(*inputs: ArrayLike) -> tuple[Variable, ...]:
        xs, gys = inputs[:n], inputs[n:]
        ys = _tuple(func(*xs))
        _check_number(ys, gys)
        # An output may keep its dtype when the inputs are of another one.
        gys = tuple(
            gy if gy is None or y is None else _core.ops.cast(gy, y.dtype)
            for y, gy in zip(ys, gys)
        )
        _checked_gradients(ys, gys)
        moving = [x for x in xs if x is None or x.dtype.kind == "f"]
        at = [*moving, *params]
        gxs = _gradients(ys, at, gys, enable_double_backprop=True)
        return tuple(
            gx if gx is not None or x is None else _zeros(x) for gx, x in zip(gxs, at)
        )

    options = (eps, atol, rtol, no_grads, dtype, detect_nondifferentiable)
    try:
        check_backward(first_order, x_data + y_grad, second, params, *options)
    except AssertionError as error:
        raise AssertionError(
            f"check_double_backward: failed (eps={eps} atol={atol} rtol={rtol})\n"
            + _listed("input", x_data)
            + _listed("grad_output", y_grad)
            + _listed("grad_grad_input", second)
            + str(error)
        ) from error


def _tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (list, tuple)) else (x,)


def _flat(x: Any) -> numpy.ndarray:
    return numpy.asarray(as_array(x), numpy.float64).ravel()


def _leaf(x: Any) -> Any:
    if x is None:
        return None
    return _core.Variable(x, requires_grad=x.dtype.kind == "f")


def _zeros(x: Any) -> Any:
    return as_variable(numpy.zeros(x.shape, x.dtype))


def _listed(name: str, arrays: Arrays) -> str:
    return "".join(f"{name}[{i}]:\n{x}\n" for i, x in enumerate(arrays))


def _skipped(x_data: Arrays, no_grads: Sequence[bool] | None) -> list[bool]:
    if no_grads is None:
        return [x is None or x.dtype.kind != "f" for x in x_data]
    if len(no_grads) != len(x_data):
        raise ValueError(
            f"check_backward: expected no_grads for {len(x_data)} inputs, "
            f"got {len(no_grads)}"
        )
    return [s or x is None for s, x in zip(no_grads, x_data)]


def _gradients(
    ys: Arrays, xs: Arrays, gys: Arrays, enable_double_backprop: bool = False
) -> list[Any]:
    """The gradients of ``xs``, in which None is an input that was not given.

    Outputs that are arrays depend on nothing.
    """
    pairs = [(y, g) for y, g in zip(ys, gys) if y is not None and g is not None]
    started = [(as_variable(y), as_variable(g)) for y, g in pairs]
    asked = [x for x in xs if x is not None]
    outputs, starts = [y for y, _ in started], [g for _, g in started]
    double = enable_double_backprop
    found = iter(grad(outputs, asked, starts, enable_double_backprop=double))
    return [None if x is None else next(found) for x in xs]


def _check_number(ys: Arrays, y_grad: Arrays) -> None:
    if len(ys) != len(y_grad):
        raise ValueError(
            f"check_backward: expected {len(ys)} output gradients, got {len(y_grad)}"
        )


def _checked_gradients(ys: Arrays, y_grad: Any) -> Arrays:
    if y_grad is None:
        if len(ys) != 1 or ys[0].shape != ():
            raise ValueError(
                "check_backward: expected y_grad for outputs that are no loss, got "
                f"None for {[y.shape for y in ys]}"
            )
        return (numpy.ones((), ys[0].dtype),)
    y_grad = _tuple(y_grad)
    _check_number(ys, y_grad)
    for y, g in zip(ys, y_grad):
        if g is None or (y is None and not as_array(g).any()):
            continue
        if y is None or (y.shape, y.dtype) != (g.shape, g.dtype):
            expected = None if y is None else f"{y.shape}:{y.dtype}"
            raise ValueError(
                f"check_backward: expected an output gradient of {expected}, "
                f"got {g.shape}:{g.dtype}"
            )
    return y_grad
