"""Test cases of functions of one array, element by element."""

from __future__ import annotations

from typing import Any, Callable

import numpy

from renga import gradient_check
from renga.backends import cuda
from renga.core.types import ArrayLike, DTypeLike
from renga.core.variable import as_variable
from renga.testing import attr
from renga.testing.array import assert_allclose
from renga.testing.parameterized import parameterize, product

Options = dict[str, Any]


def unary_math_function_unittest(
    func: Any,
    func_expected: Callable[..., numpy.ndarray] | None = None,
    label_expected: str | None = None,
    make_data: Callable[..., tuple[numpy.ndarray, ...]] | None = None,
    is_linear: bool | None = None,
    forward_options: Options | None = None,
    backward_options: Options | None = None,
    double_backward_options: Options | None = None,
) -> Callable[[type], object]:
    """Decorator that gives a case tests of ``func`` in all float dtypes.

    ``func_expected(x, dtype=…)`` is by default NumPy's function of the same name;
    ``make_data(shape, dtype)`` gives an input, a gradient and a second gradient. The
    second derivative is that of the square where ``is_linear``.

    Raises:
        ValueError: NumPy has no function of that name.
    """
    name = getattr(func, "__name__", type(func).__name__).lower()
    expected = func_expected or getattr(numpy, name, None)
    if expected is None:
        raise ValueError(f"unary_math_function_unittest: NumPy has no function {name}")
    make_data = make_data or _uniform

    def decorate(cls: type) -> Any:
        def setup(self: Any) -> None:
            self.x, self.gy, self.ggx = make_data(self.shape, self.dtype)
            tolerance: Options = {"atol": 1e-4, "rtol": 1e-4}
            gradient = {"dtype": numpy.float64, **tolerance}
            if self.dtype == numpy.float16:
                tolerance = {"atol": 2**-10, "rtol": 2**-10}
                gradient.update(eps=2**-4, atol=2**-4, rtol=2**-4)
            self.forward_options = {**tolerance, **(forward_options or {})}
            self.backward_options = {**gradient, **(backward_options or {})}
            self.double_backward_options = {
                **gradient,
                **(double_backward_options or {}),
            }

        def check_forward(self: Any, x: Any) -> None:
            y = func(as_variable(x))
            assert y.dtype == x.dtype
            assert_allclose(
                expected(cuda.to_cpu(x), dtype=x.dtype), y, **self.forward_options
            )

        def check_backward(self: Any, x: Any, gy: Any) -> None:
            gradient_check.check_backward(func, x, gy, **self.backward_options)

        def check_double_backward(self: Any, x: Any, gy: Any, ggx: Any) -> None:
            # A function whose second derivative is 0 is squared.
            def function(x: ArrayLike) -> Any:
                y = func(x)
                return y * y if is_linear else y

            gradient_check.check_double_backward(
                function, x, gy, ggx, **self.double_backward_options
            )

        def test_label(self: Any) -> None:
            label = getattr(func(as_variable(self.x)).creator, "label", None)
            assert label == (label_expected or name)

        checks = {
            check_forward: ("x",),
            check_backward: ("x", "gy"),
            check_double_backward: ("x", "gy", "ggx"),
        }
        for check, arguments in checks.items():
            setattr(cls, check.__name__, check)
            for device, send in (("cpu", numpy.asarray), ("gpu", cuda.to_gpu)):
                test = _test(check.__name__, arguments, send)
                name_of_test = check.__name__.replace("check", "test") + "_" + device
                setattr(cls, name_of_test, attr.gpu(test) if device == "gpu" else test)
        if label_expected:
            cls.test_label = test_label  # type: ignore[attr-defined]
        cls.setUp = setup  # type: ignore[attr-defined]
        dtypes = [numpy.float16, numpy.float32, numpy.float64]
        cases: dict[str, list[Any]] = {"shape": [(3, 2), ()], "dtype": dtypes}
        return parameterize(*product(cases))(cls)

    return decorate


def _test(
    check: str, arguments: tuple[str, ...], send: Callable[[Any], Any]
) -> Callable[[Any], None]:
    def test(self: Any) -> None:
        getattr(self, check)(*(send(getattr(self, name)) for name in arguments))

    return test


def _uniform(shape: tuple[int, ...], dtype: DTypeLike) -> tuple[numpy.ndarray, ...]:
    return tuple(
        numpy.asarray(numpy.random.uniform(-1, 1, shape), dtype) for _ in range(3)
    )
