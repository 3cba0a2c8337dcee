"""Remainders."""

from __future__ import annotations

from typing import Any

import numpy

from renga.core.function_node import FunctionNode
from renga.core.variable import Variable
from renga.functions.array.broadcast import broadcast
from renga.functions.check import check_floats
from renga.functions.math.fix import fix
from renga.functions.on_host import on_host


@on_host
def fmod(x: Any, divisor: Any) -> Variable:
    """The remainder of division, with the sign of ``x``.

    Raises:
        InvalidType: dtypes differ or are not floats.
    """
    check_floats("fmod", x, divisor)
    pair: Any = broadcast(x, divisor)
    return _Remainder().apply(pair)[0]


class _Remainder(FunctionNode):
    @property
    def label(self) -> str:
        return "fmod"

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        self.retain_inputs((0, 1))
        return (numpy.asarray(numpy.fmod(*inputs)),)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        x, divisor = self.get_retained_inputs()
        (gy,) = grad_outputs
        gradients = {0: lambda: gy, 1: lambda: -(gy * fix(x / divisor))}
        return tuple(gradients[i]() for i in target_input_indexes)
