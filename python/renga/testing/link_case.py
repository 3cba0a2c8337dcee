"""LinkTestCase: a link against its definition, numerical gradients and initializers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga import gradient_check, initializers
from renga.backends.device import Device
from renga.core.link import Link
from renga.core.types import Initial
from renga.core.variable import Variable
from renga.testing.backend import BackendConfig
from renga.testing.case import (
    Arrays,
    Case,
    CaseError,
    arrays_of,
    check_equal,
    checked_arrays,
    variables_of,
)


class LinkTestError(CaseError):
    """A link differs from its test case's expectation."""


class InitializerArgument:
    """An argument of a link, and the initializer that it means.

    Raises:
        ValueError: the initializer is None.
        TypeError: the initializer is no number, array or callable.
    """

    def __init__(self, argument_value: Initial, expected_initializer: Initial) -> None:
        if expected_initializer is None:
            raise ValueError("InitializerArgument: expected an initializer, got None")
        initializers.get_initializer(expected_initializer)
        self.argument_value = argument_value
        self.expected_initializer = expected_initializer


class _LinkCase(Case):
    error = LinkTestError
    param_names: Sequence[str] = ()

    def generate_params(self) -> tuple[Any, ...]:
        """Initial values of the parameters, in the order of ``param_names``."""
        raise NotImplementedError("generate_params() is not implemented")

    def create_link(self, initializers: Any) -> Link:
        """The link with these initializers of the parameters."""
        raise NotImplementedError("create_link() is not implemented")

    def forward(self, link: Link, inputs: tuple[Variable, ...], device: Device) -> Any:
        """The outputs, a tuple of Variables; by default ``link(*inputs)``."""
        outputs = link(*inputs)
        return (outputs,) if isinstance(outputs, Variable) else outputs

    def _params(self, link: Link) -> list[Any]:
        return [self._param(link, name) for name in self.param_names]

    def _param(self, link: Link, name: str) -> Any:
        found: Any = link
        for attribute in name.split("."):
            found = getattr(found, attribute, None)
        if found is None:
            self.error.fail(f"Link does not have a parameter named {name!r}")
        return found

    def _values(self) -> list[InitializerArgument]:
        return _pairs("generate_params", self.generate_params())

    def _link(self, values: Sequence[InitializerArgument]) -> Link:
        link = self.create_link([value.argument_value for value in values])
        if not isinstance(link, Link):
            raise TypeError(f"create_link() must return a link, not {type(link)}")
        config = self.backend_config or BackendConfig({})
        link.to_device(config.device)
        return link

    def _run(self, link: Link, inputs: tuple[Variable, ...]) -> tuple[Variable, ...]:
        config = self.backend_config or BackendConfig({})
        return self._outputs(self.forward(link, inputs, config.device))


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
        link = self._link(self._values())
        inputs = self._inputs()
        sent = variables_of(self._to_device(inputs))
        with config:
            outputs = self._run(link, sent)
        expected = checked_arrays(
            "forward_expected", self.forward_expected(link, inputs)
        )
        self.check_forward_outputs(arrays_of(outputs), expected)

    def test_backward(self, backend_config: BackendConfig | None = None) -> None:
        """Compares gradients of inputs and parameters with numerical ones."""
        config = self._start("test_backward", backend_config)
        options = self._gradient_options(self.check_backward_options)

        def check() -> None:
            link = self._link(self._values())
            inputs = self._to_device(self._inputs())
            # Uninitialised parameters get their shapes here.
            outputs = self._run(link, variables_of(inputs))
            grads = self._to_device(self._grad_outputs(arrays_of(outputs)))
            params = self._params(link)
            constants = [p for p in link.params() if all(p is not q for q in params)]

            def function(*xs: Variable) -> tuple[Variable, ...]:
                for p in constants:
                    p.array = p.array.astype(_float_dtype(xs, p.dtype), copy=False)
                return self._run(link, xs)

            with self.error.raise_if_fail("backward is not implemented correctly"):
                gradient_check.check_backward(
                    function, inputs, grads, params, **options
                )

        with config:
            self._dodge(check)


class LinkInitializersTestCase(_LinkCase):
    """Checks the initial values of parameters for each initializer.

    ``get_initializers`` gives, for each parameter, the initializers to try; the values
    of the others are those of ``generate_params``.
    """

    check_initializers_options: dict[str, Any] | None = None

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.check_initializers_options = {}

    def get_initializers(self) -> Sequence[Sequence[object]]:
        """A list for each parameter: initializers, arrays, or InitializerArguments."""
        raise NotImplementedError("get_initializers() is not implemented")

    def test_initializers(self, backend_config: BackendConfig | None = None) -> None:
        """Compares each parameter with its initializer's values."""
        config = self._start("test_initializers", backend_config)
        choices = _sequence("get_initializers", self.get_initializers())
        pairs = [_pairs("get_initializers", options) for options in choices]
        for i, options in enumerate(pairs):
            for option in options:
                values = self._values()
                values[i] = option
                link = self._link(values)
                inputs = variables_of(self._to_device(self._inputs()))
                with config:
                    self._run(link, inputs)
                self._check(self._params(link)[i], option.expected_initializer)

    def _check(self, param: Any, initializer: Any) -> None:
        expected = numpy.empty(param.shape, param.dtype)
        initializers.get_initializer(initializer)(expected)
        options = self.check_initializers_options or {}
        check_equal(self.error, (numpy.asarray(param.array),), (expected,), options)


def _sequence(name: str, values: Any) -> Sequence[Any]:
    if not isinstance(values, (tuple, list)):
        raise TypeError(f"{name}() must return a tuple or a list, not {type(values)}")
    return values


def _pairs(name: str, values: Any) -> list[InitializerArgument]:
    """Arguments of a link with the initializers that they mean."""
    return [
        value
        if isinstance(value, InitializerArgument)
        else InitializerArgument(value, value)
        for value in _sequence(name, values)
    ]


def _float_dtype(xs: Sequence[Variable], default: Any) -> Any:
    """The dtype of the inputs of floats, which a check may compute in float64."""
    floats = [x.dtype for x in xs if x.dtype.kind == "f"]
    return floats[0] if floats else default
