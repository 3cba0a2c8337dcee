"""FunctionTestCase: a function against its definition and numerical gradients."""

from __future__ import annotations

from typing import Any

from renga import gradient_check
from renga.backends.device import Device
from renga.core.variable import Variable
from renga.testing.array import assert_allclose
from renga.testing.backend import BackendConfig
from renga.testing.case import (
    Arrays,
    Case,
    CaseError,
    arrays_of,
    checked_arrays,
    random_like,
    variables_of,
)


class FunctionTestError(CaseError):
    """A function differs from its test case's expectation."""


class FunctionTestCase(Case):
    """Checks a function forward, backward, and backward again.

    A subclass defines ``generate_inputs``, ``forward`` and ``forward_expected``;
    options of the checks are set in ``setUp`` or ``before_test``. With
    ``dodge_nondifferentiable`` inputs are drawn until they are not at a kink.
    """

    error = FunctionTestError
    check_double_backward_options: dict[str, Any] | None = None
    skip_double_backward_test = False

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.check_double_backward_options = {}

    def forward(
        self, inputs: tuple[Variable, ...], device: Device
    ) -> tuple[Variable, ...]:
        """The function of the inputs: a tuple of Variables."""
        raise NotImplementedError("forward() is not implemented")

    def forward_expected(self, inputs: Arrays) -> Arrays:
        """The expected outputs, computed by NumPy."""
        raise NotImplementedError("forward_expected() is not implemented")

    def generate_grad_grad_inputs(self, inputs_template: Arrays) -> Arrays:
        """Second gradients, in the shapes and dtypes of the inputs."""
        return random_like(inputs_template)

    def test_forward(self, backend_config: BackendConfig | None = None) -> None:
        self.run_test_forward(backend_config)

    def test_backward(self, backend_config: BackendConfig | None = None) -> None:
        self.run_test_backward(backend_config)

    def test_double_backward(self, backend_config: BackendConfig | None = None) -> None:
        self.run_test_double_backward(backend_config)

    def run_test_forward(self, backend_config: BackendConfig | None) -> None:
        """Compares the outputs, and checks that the inputs are unchanged."""
        config = self._start("test_forward", backend_config)
        inputs = self._inputs()
        sent = self._to_device(inputs)
        before = tuple(x.copy() for x in sent)
        expected = self._expected(self._to_device(inputs))
        with config:
            outputs = self._outputs(self.forward(variables_of(sent), config.device))
        for i, (x, old) in enumerate(zip(sent, before)):
            with self.error.raise_if_fail(
                f"Input arrays have been modified during forward: input {i}"
            ):
                assert_allclose(x, old, atol=0, rtol=0)
        self.check_forward_outputs(arrays_of(outputs), expected)

    def run_test_backward(self, backend_config: BackendConfig | None) -> None:
        """Compares the gradients with numerical ones."""
        config = self._start("test_backward", backend_config)
        options = self._gradient_options(self.check_backward_options)

        def check() -> None:
            inputs = self._inputs()
            grads = self._to_device(self._grad_outputs(self._expected(inputs)))
            sent = self._to_device(inputs)
            with self.error.raise_if_fail("backward is not implemented correctly"):
                gradient_check.check_backward(self._function, sent, grads, **options)

        with config:
            self._dodge(check)

    def run_test_double_backward(self, backend_config: BackendConfig | None) -> None:
        """Compares the gradients of the gradients with numerical ones."""
        config = self._start("test_double_backward", backend_config)
        options = self._gradient_options(self.check_double_backward_options)

        def check() -> None:
            inputs = self._inputs()
            grads = self._to_device(self._grad_outputs(self._expected(inputs)))
            seconds = checked_arrays(
                "generate_grad_grad_inputs", self.generate_grad_grad_inputs(inputs)
            )
            # Integers have no gradients, and no gradients of those.
            seconds = tuple(g for g in seconds if g is None or g.dtype.kind == "f")
            sent, seconds = self._to_device(inputs), self._to_device(seconds)
            with self.error.raise_if_fail(
                "double backward is not implemented correctly"
            ):
                gradient_check.check_double_backward(
                    self._function, sent, grads, seconds, **options
                )

        with config:
            self._dodge(check)

    def _function(self, *xs: Variable) -> tuple[Variable, ...]:
        config = self.backend_config or BackendConfig({})
        return self._outputs(self.forward(xs, config.device))

    def _expected(self, inputs: Arrays) -> Arrays:
        return checked_arrays("forward_expected", self.forward_expected(inputs))
