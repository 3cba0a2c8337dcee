"""The condition of functions that treat negative numbers in another way."""

from __future__ import annotations

from typing import Any

import numpy

from renga.core.function_node import FunctionNode
from renga.core.variable import Variable
from renga.functions.on_host import on_host


@on_host
def not_negative(x: Any) -> Variable:
    """Whether each element is at least 0: bools, which hooks see being computed."""
    x = numpy.asarray(x) if isinstance(x, numpy.generic) else x
    return NotNegative().apply((x,))[0]


class NotNegative(FunctionNode):
    """``x >= 0``."""

    is_elementwise = True

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return (numpy.asarray(inputs[0] >= 0),)
