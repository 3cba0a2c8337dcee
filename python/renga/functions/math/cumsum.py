"""Sums of all elements up to each."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.core.function_node import FunctionNode
from renga.core.variable import Variable
from renga.functions.array.flip import flip
from renga.functions.check import check_axis, check_floats


def cumsum(x: Any, axis: int | None = None) -> Variable:
    """Sums along an axis of all elements up to each; of the flat array without one.

    Raises:
        TypeError: the axis is not an integer.
        InvalidType: there is no such axis, or ``x`` is not of floats.
    """
    check_floats("cumsum", x)
    if axis is None:
        x, axis = _core.ops.flatten(x), 0
    return _CumulativeSum(check_axis("cumsum", x, axis)).apply((x,))[0]


class _CumulativeSum(FunctionNode):
    def __init__(self, axis: int) -> None:
        self.axis = axis

    @property
    def label(self) -> str:
        return "cumsum"

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        (x,) = inputs
        wide = "f" if x.dtype.char == "e" else x.dtype
        return (x.cumsum(self.axis, dtype=wide).astype(x.dtype, copy=False),)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        gy = flip(grad_outputs[0], self.axis)
        return (flip(cumsum(gy, self.axis), self.axis),)
