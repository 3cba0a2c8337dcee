"""Base of the test cases of functions and of links."""

from __future__ import annotations

import contextlib
import unittest
from collections.abc import Iterator, Sequence
from typing import Any, Callable, NoReturn

import numpy

from renga import gradient_check
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable
from renga.testing.array import assert_allclose
from renga.testing.backend import BackendConfig

Arrays = tuple[numpy.ndarray, ...]


class CaseError(AssertionError):
    """A function or a link differs from its test case's expectation."""

    @classmethod
    def check(cls, expr: object, message: str) -> None:
        """Raises unless ``expr`` is true."""
        if not expr:
            cls.fail(message)

    @classmethod
    def fail(cls, message: str, exc: BaseException | None = None) -> NoReturn:
        """Raises, with the text of ``exc`` after the message."""
        if exc is None:
            raise cls(message)
        raise cls(f"{message}\n\n{type(exc).__name__}: {exc}") from exc

    @classmethod
    @contextlib.contextmanager
    def raise_if_fail(
        cls,
        message: str,
        error_types: type[BaseException]
        | tuple[type[BaseException], ...] = AssertionError,
    ) -> Iterator[None]:
        """Context whose errors become this one, with the message in front."""
        try:
            yield
        except error_types as error:
            cls.fail(message, error)


class Case(unittest.TestCase):
    """Inputs, expected outputs and options of checks; a subclass runs the checks."""

    error: type[CaseError] = CaseError
    backend_config: BackendConfig | None = None
    test_name = ""
    check_forward_options: dict[str, Any] | None = None
    check_backward_options: dict[str, Any] | None = None
    skip_forward_test = False
    skip_backward_test = False
    dodge_nondifferentiable = False
    contiguous: str | None = None
    numerical_grad_dtype: Any = numpy.float64

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.check_forward_options = {}
        self.check_backward_options = {}

    def before_test(self, test_name: str) -> None:
        """Called before each check with ``test_forward``, ``test_backward``, …."""

    def generate_inputs(self) -> Arrays:
        """The input arrays, redrawn for each check."""
        raise NotImplementedError("generate_inputs() is not implemented")

    def generate_grad_outputs(self, outputs_template: Arrays) -> Arrays:
        """Gradients of the outputs, which have the shapes and dtypes of these."""
        return random_like(outputs_template)

    def check_forward_outputs(self, outputs: Arrays, expected_outputs: Arrays) -> None:
        """Compares outputs by ``assert_allclose`` with ``check_forward_options``."""
        options = self.check_forward_options or {}
        check_equal(self.error, outputs, expected_outputs, options)

    def _start(self, name: str, backend_config: BackendConfig | None) -> BackendConfig:
        """The configuration of a test, unless ``skip_forward_test``, … is set."""
        skip = name.replace("test_", "skip_") + "_test"
        if getattr(self, skip, False):
            self.skipTest(f"{skip} is set")
        self.backend_config = backend_config or BackendConfig({})
        self.test_name = name
        self.before_test(name)
        return self.backend_config

    def _inputs(self) -> Arrays:
        return checked_arrays("generate_inputs", self.generate_inputs())

    def _grad_outputs(self, outputs: Arrays) -> Arrays:
        grads = self.generate_grad_outputs(outputs)
        return checked_arrays("generate_grad_outputs", grads)

    def _to_device(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        if self.contiguous not in (None, "C"):
            raise ValueError(
                f"{type(self).__name__}: expected contiguous of None or 'C', "
                f"got {self.contiguous!r}"
            )
        config = self.backend_config or BackendConfig({})
        sent = tuple(map(config.get_array, arrays))
        return sent if self.contiguous == "C" else tuple(map(spread, sent))

    def _outputs(self, outputs: Any) -> tuple[Variable, ...]:
        if not isinstance(outputs, tuple):
            self.error.fail(f"forward() must return a tuple, not {type(outputs)}")
        types = [type(y).__name__ for y in outputs]
        variables = all(isinstance(y, Variable) for y in outputs)
        self.error.check(
            variables, f"forward() must return a tuple of Variables, not of {types}"
        )
        return outputs

    def _gradient_options(self, options: dict[str, Any] | None) -> dict[str, Any]:
        """``options`` and those that the attributes of the case give."""
        return dict(
            dtype=self.numerical_grad_dtype,
            detect_nondifferentiable=self.dodge_nondifferentiable,
            **(options or {}),
        )

    def _dodge(self, check: Callable[[], None]) -> None:
        """Runs a gradient check, and repeats it as long as its inputs are at a kink."""
        while True:
            try:
                check()
                return
            except gradient_check.NondifferentiableError:
                if not self.dodge_nondifferentiable:
                    raise


def checked_arrays(name: str, arrays: Sequence[Array]) -> Arrays:
    """What a generator returned, if it is a tuple of NumPy arrays and None.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(arrays, tuple):
        raise TypeError(f"{name}() must return a tuple, not {type(arrays)}")
    if not all(x is None or isinstance(x, numpy.ndarray) for x in arrays):
        types = [type(x).__name__ for x in arrays]
        raise TypeError(f"{name}() must return a tuple of NumPy arrays, not of {types}")
    return arrays


def check_equal(
    error: type[CaseError], arrays: Arrays, expected: Arrays, options: dict[str, Any]
) -> None:
    """Raises ``error`` unless numbers, shapes, dtypes and values are equal."""
    got, wanted = (
        ", ".join(f"{x.shape}:{x.dtype}" for x in each) for each in (arrays, expected)
    )
    about = f"\nExpected shapes and dtypes: {wanted}\nActual shapes and dtypes:   {got}"
    numbers = (len(arrays), len(expected))
    error.check(
        len(arrays) == len(expected),
        f"Number of outputs {numbers} does not match{about}",
    )
    error.check(got == wanted, f"Shapes and/or dtypes do not match{about}")
    wrong = []
    for i, (y, correct) in enumerate(zip(arrays, expected)):
        try:
            assert_allclose(y, correct, **options)
        except AssertionError as failure:
            wrong.append(f"Output {i}:\n{failure}")
    error.check(
        not wrong,
        "\n".join(["Outputs do not match the expected values" + about, *wrong]),
    )


def arrays_of(outputs: Sequence[Variable]) -> Arrays:
    """The outputs as NumPy arrays."""
    return tuple(numpy.asarray(y.array) for y in outputs)


def random_like(templates: Sequence[ArrayLike]) -> Arrays:
    """Uniform numbers from -1 to 1 in the shapes and dtypes given."""
    return tuple(
        numpy.asarray(numpy.random.uniform(-1, 1, t.shape), t.dtype) for t in templates
    )


def spread(array: Array) -> Array:
    """The same values in an array whose strides are negative, and which has gaps."""
    if array is None or array.size <= 1:
        return array
    memory = numpy.empty([2 * n for n in array.shape], array.dtype)
    view = memory[(slice(None, None, -2),) * array.ndim]
    view[...] = array
    return view


def variables_of(arrays: Sequence[ArrayLike]) -> tuple[Variable, ...]:
    """Variables over arrays; those of floats require gradients."""
    return tuple(Variable(x, requires_grad=x.dtype.kind == "f") for x in arrays)
