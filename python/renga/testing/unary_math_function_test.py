"""Test cases of functions of one array, element by element."""

from __future__ import annotations

from typing import Any, Callable

import numpy

from renga import gradient_check
from renga.core.types import ArrayLike, DTypeLike
from renga.core.variable import as_variable
from renga.testing.array import assert_allclose
from renga.testing.parameterized import parameterize, product

Options = dict[str, Any]


def unary_math_function_unittest(
    func: Any,
    func_expected: Callable[[numpy.ndarray], numpy.ndarray] | None = None,
    label_expected: str | None = None,
    make_data: Callable[..., tuple[numpy.ndarray, ...]] | None = None,
    is_linear: bool | None = None,
    forward_options: Options | None = None,
    backward_options: Options | None = None,
    double_backward_options: Options | None = None,
) -> Callable[[type], object]:
    """Decorator that gives a case tests of ``func`` in all float dtypes.

    ``func_expected`` is NumPy's function, by default that of the same name;
    ``make_data(shape, dtype)`` gives an input, a gradient and a second gradient. The
    second derivative is not checked where ``is_linear``.
    """
    name = getattr(func, "__name__", type(func).__name__).lower()
    if func_expected is None:
        func_expected = getattr(numpy, name)
    make_data = make_data or _uniform

    def decorate(cls: type) -> Any:
        def setup(self: Any) -> None:
            self.x, self.gy, self.ggx = make_data(self.shape, self.dtype)
            loose = self.dtype == numpy.float16
            tolerance = {"atol": 5e-3, "rtol": 5e-3} if loose else {}
            self.forward_options = {**tolerance, **(forward_options or {})}
            gradient = {"dtype": numpy.float64, "atol": 1e-4, "rtol": 1e-4}
            gradient.update(tolerance)
            self.backward_options = {**gradient, **(backward_options or {})}
            self.double_options = {**gradient, **(double_backward_options or {})}

        def test_forward(self: Any) -> None:
            y = func(as_variable(self.x))
            assert y.dtype == self.dtype
            expected = func_expected(self.x.astype(numpy.float64))
            assert_allclose(y, expected.astype(self.dtype), **self.forward_options)

        def test_backward(self: Any) -> None:
            gradient_check.check_backward(
                func, self.x, self.gy, **self.backward_options
            )

        def test_double_backward(self: Any) -> None:
            # A function whose second derivative is 0 is squared.
            def function(x: ArrayLike) -> Any:
                y = func(x)
                return y * y if is_linear else y

            gradient_check.check_double_backward(
                function, self.x, self.gy, self.ggx, **self.double_options
            )

        def test_label(self: Any) -> None:
            label = getattr(func(as_variable(self.x)).creator, "label", None)
            assert label == (label_expected or name)

        tests = [test_forward, test_backward, test_double_backward]
        for method in [*tests, test_label] if label_expected else tests:
            setattr(cls, method.__name__, method)
        cls.setUp = setup  # type: ignore[attr-defined]
        dtypes = [numpy.dtype(name) for name in ("f2", "f4", "f8")]
        cases: dict[str, list[Any]] = {"shape": [(3, 2), ()], "dtype": dtypes}
        return parameterize(*product(cases))(cls)

    return decorate


def _uniform(shape: tuple[int, ...], dtype: DTypeLike) -> tuple[numpy.ndarray, ...]:
    return tuple(
        numpy.asarray(numpy.random.uniform(-1, 1, shape), dtype) for _ in range(3)
    )
