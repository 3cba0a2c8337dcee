"""Base of the test cases of functions and of links."""

from __future__ import annotations

import contextlib
import unittest
from collections.abc import Iterator, Sequence
from typing import Any, Callable

import numpy

from renga import gradient_check
from renga.testing.array import assert_allclose
from renga.testing.backend import BackendConfig
from renga.variable import Variable, as_variable

Arrays = tuple[numpy.ndarray, ...]
_ATTEMPTS = 10


class CaseError(AssertionError):
    """A function or a link differs from its test case's expectation."""

    @classmethod
    def check(cls, expr: Any, message: str) -> None:
        """Raises unless ``expr`` is true."""
        if not expr:
            raise cls(message)

    @classmethod
    @contextlib.contextmanager
    def raise_if_fail(
        cls, message: str, error_types: Any = AssertionError
    ) -> Iterator[None]:
        """Context whose errors become this one, with the message in front."""
        try:
            yield
        except error_types as error:
            raise cls(f"{message}\n{error}") from error


class Case(unittest.TestCase):
    """Inputs, expected outputs and options of checks; a subclass runs the checks."""

    error: type[CaseError] = CaseError
    backend_config: BackendConfig | None = None
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
        self.error.check(
            len(outputs) == len(expected_outputs),
            f"expected {len(expected_outputs)} outputs, got {len(outputs)}",
        )
        for i, (y, expected) in enumerate(zip(outputs, expected_outputs)):
            same = y.shape == expected.shape and y.dtype == expected.dtype
            self.error.check(
                same,
                f"output {i}: expected {expected.shape} of {expected.dtype}, got "
                f"{y.shape} of {y.dtype}",
            )
            with self.error.raise_if_fail(f"output {i} is not as expected"):
                assert_allclose(y, expected, **(self.check_forward_options or {}))

    def _start(self, name: str, backend_config: BackendConfig | None) -> BackendConfig:
        self.backend_config = backend_config or BackendConfig({})
        self.before_test(name)
        return self.backend_config

    def _inputs(self) -> Arrays:
        inputs = self.generate_inputs()
        arrays = isinstance(inputs, tuple) and all(
            isinstance(x, numpy.ndarray) for x in inputs
        )
        self.error.check(
            arrays, "generate_inputs() must return a tuple of NumPy arrays"
        )
        return inputs

    def _to_device(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        config = self.backend_config or BackendConfig({})
        sent = tuple(map(config.get_array, arrays))
        return sent if self.contiguous == "C" else tuple(map(spread, sent))

    def _outputs(self, outputs: Any) -> tuple[Variable, ...]:
        variables = isinstance(outputs, tuple) and all(
            isinstance(y, Variable) for y in outputs
        )
        self.error.check(variables, "forward() must return a tuple of Variables")
        return outputs

    def _dodge(self, check: Callable[[dict[str, Any]], None]) -> None:
        """Runs a gradient check, and repeats it if its inputs were at a kink."""
        if not self.dodge_nondifferentiable:
            check({})
            return
        for attempt in range(_ATTEMPTS):
            try:
                check({"detect_nondifferentiable": True})
                return
            except gradient_check.NondifferentiableError:
                if attempt == _ATTEMPTS - 1:
                    raise


def arrays_of(outputs: Sequence[Variable]) -> Arrays:
    """The outputs as NumPy arrays."""
    return tuple(numpy.asarray(y.array) for y in outputs)


def random_like(templates: Sequence[Any]) -> Arrays:
    """Uniform numbers from -1 to 1 in the shapes and dtypes given."""
    return tuple(
        numpy.asarray(numpy.random.uniform(-1, 1, t.shape), t.dtype) for t in templates
    )


def spread(array: Any) -> Any:
    """The same values in a non-contiguous array."""
    if array is None or array.ndim == 0:
        return array
    memory = numpy.empty((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    view = memory[..., ::2]
    view[...] = array
    return view


def variables_of(arrays: Sequence[Any]) -> tuple[Variable, ...]:
    """Variables over arrays."""
    return tuple(map(as_variable, arrays))
