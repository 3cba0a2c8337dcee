"""Functions of one array whose values SciPy computes."""

from __future__ import annotations

import importlib
from typing import Any, Callable

import numpy

from renga import _core
from renga.core.function_node import FunctionNode
from renga.core.variable import Variable
from renga.functions.check import check_floats

Derivative = Callable[[Any, Any], Variable]


def special(name: str, x: Any, derivative: Derivative, *parameters: Any) -> Variable:
    """``scipy.special.<name>(*parameters, x)``, element by element.

    ``derivative(x, y)`` gives dy/dx of Variables.

    Raises:
        InvalidType: ``x`` is not of floats.
        ImportError: SciPy is not installed.
    """
    check_floats(name, x)
    return _Special(name, derivative, parameters).apply((x,))[0]


class _Special(FunctionNode):
    def __init__(
        self, name: str, derivative: Derivative, parameters: tuple[Any, ...]
    ) -> None:
        self.name = name
        self.derivative = derivative
        self.parameters = parameters

    @property
    def label(self) -> str:
        return self.name

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        (x,) = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        function = getattr(importlib.import_module("scipy.special"), self.name)
        wide = x.astype("f") if x.dtype.char == "e" else x
        return (numpy.asarray(function(*self.parameters, wide)).astype(x.dtype),)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        (x,) = self.get_retained_inputs()
        (y,) = self.get_retained_outputs()
        return (_core.ops.multiply(grad_outputs[0], self.derivative(x, y)),)
