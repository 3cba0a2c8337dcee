"""LinkTestCase: a link against its definition, numerical gradients and initializers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from renga import gradient_check, initializers
from renga.link import Link
from renga.testing.array import assert_allclose
from renga.testing.backend import BackendConfig
from renga.testing.case import Arrays, Case, CaseError, arrays_of, variables_of
from renga.variable import Variable


class LinkTestError(CaseError):
    """A link differs from its test case's expectation."""


class InitializerArgument(NamedTuple):
    """An argument of a link, and the initializer that it means."""

    argument_value: Any
    expected_initializer: Any


class _LinkCase(Case):
    error = LinkTestError
    param_names: Sequence[str] = ()

    def generate_params(self) -> tuple[Any, ...]:
        """Initial values of the parameters, in the order of ``param_names``."""
        raise NotImplementedError("generate_params() is not implemented")

    def create_link(self, initializers: Any) -> Link:
        """The link with these initializers of the parameters."""
        raise NotImplementedError("create_link() is not implemented")

    def forward(self, link: Link, inputs: tuple[Variable, ...], device: Any) -> Any:
        """The outputs, a tuple of Variables; by default ``link(*inputs)``."""
        outputs = link(*inputs)
        return (outputs,) if isinstance(outputs, Variable) else outputs

    def _param(self, link: Link, name: str) -> Any:
        for attribute in name.split("."):
            link = getattr(link, attribute)
        return link

    def _link(self, values: Sequence[Any]) -> Link:
        link = self.create_link(values)
        self.error.check(isinstance(link, Link), "create_link() must return a link")
        config = self.backend_config or BackendConfig({})
        link.to_device(config.device)
        return link


class LinkTestCase(_LinkCase):
    """Checks a link forward and backward.

    A subclass defines ``param_names``, ``generate_params``, ``create_link``,
    ``generate_inputs`` and ``forward_expected``.
    """

    def forward_expected(self, link: Link, inputs: Arrays) -> Arrays:
        """The expected outputs, computed by NumPy."""
        raise NotImplementedError("forward_expected() is not implemented")

    def test_forward(self, backend_config: BackendConfig | None = None) -> None:
        """Compares the outputs."""
        config = self._start("test_forward", backend_config)
        if self.skip_forward_test:
            self.skipTest("skip_forward_test is set")
        link = self._link(self.generate_params())
        inputs = self._inputs()
        sent = variables_of(self._to_device(inputs))
        with config:
            outputs = self._outputs(self.forward(link, sent, config.device))
        expected = self.forward_expected(link, inputs)
        self.check_forward_outputs(arrays_of(outputs), expected)

    def test_backward(self, backend_config: BackendConfig | None = None) -> None:
        """Compares gradients of inputs and parameters with numerical ones."""
        config = self._start("test_backward", backend_config)
        if self.skip_backward_test:
            self.skipTest("skip_backward_test is set")

        def check(options: dict[str, Any]) -> None:
            link = self._link(self.generate_params())
            inputs = self._to_device(self._inputs())
            # Uninitialised parameters get their shapes here.
            outputs = self.forward(link, variables_of(inputs), config.device)
            grads = self.generate_grad_outputs(arrays_of(self._outputs(outputs)))
            params = [self._param(link, name) for name in self.param_names]

            def function(*xs: Variable) -> tuple[Variable, ...]:
                return self._outputs(self.forward(link, xs, config.device))

            options = {
                "dtype": self.numerical_grad_dtype,
                **options,
                **(self.check_backward_options or {}),
            }
            with self.error.raise_if_fail("backward is not as the numerical gradient"):
                gradient_check.check_backward(
                    function, inputs, self._to_device(grads), params, **options
                )

        with config:
            self._dodge(check)


class LinkInitializersTestCase(_LinkCase):
    """Checks the initial values of parameters for each initializer.

    ``get_initializers`` gives, for each parameter, the initializers to try; the values
    of the others are the first of theirs.
    """

    check_initializers_options: dict[str, Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.check_initializers_options = {}

    def get_initializers(self) -> Sequence[Sequence[Any]]:
        """A list for each parameter: initializers, arrays, or InitializerArguments."""
        raise NotImplementedError("get_initializers() is not implemented")

    def test_initializers(self, backend_config: BackendConfig | None = None) -> None:
        """Compares each parameter with its initializer's values."""
        config = self._start("test_initializers", backend_config)
        choices = self.get_initializers()
        self.error.check(
            len(choices) == len(self.param_names),
            f"get_initializers() must return {len(self.param_names)} lists",
        )
        for i, options in enumerate(choices):
            for option in options:
                chosen = [_pair(each[0]) for each in choices]
                chosen[i] = _pair(option)
                link = self._link([pair.argument_value for pair in chosen])
                inputs = variables_of(self._to_device(self._inputs()))
                with config:
                    self.forward(link, inputs, config.device)
                self._check(link, self.param_names[i], chosen[i].expected_initializer)

    def _check(self, link: Link, name: str, initializer: Any) -> None:
        param = self._param(link, name)
        if isinstance(initializer, numpy.ndarray):
            expected = initializer
        else:
            expected = numpy.empty(param.shape, param.dtype)
            initializers._get_initializer(initializer)(expected)
        with self.error.raise_if_fail(f"{name} differs from {initializer}"):
            assert_allclose(
                param.array, expected, **(self.check_initializers_options or {})
            )


def _pair(option: Any) -> InitializerArgument:
    if isinstance(option, InitializerArgument):
        return option
    return InitializerArgument(option, option)
