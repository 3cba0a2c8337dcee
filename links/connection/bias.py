"""Bias: adds a learnt or a given array."""

from __future__ import annotations

from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions import bias
from renga.utils.extents import check_sizes


class Bias(Link):
    """``x + b``, with the first axis of ``b`` being axis ``axis`` of ``x``.

    Without ``shape`` there is no parameter and ``b`` is the second input.

    Shapes:
        x, y: (…, *b.shape, …)
        b: shape, initially zeros
    """

    b: Parameter

    def __init__(self, axis: int = 1, shape: tuple[int, ...] | None = None) -> None:
        super().__init__()
        check_sizes(self, shape=shape)
        self.axis = axis
        if shape is not None:
            with self.init_scope():
                self.b = Parameter(0, shape)

    def forward(self, *xs: ArrayLike) -> Variable:
        """The sum; ValueError for another number of inputs."""
        if hasattr(self, "b"):
            (x,) = xs
            return bias(x, self.b, self.axis)
        x, y = xs
        return bias(x, y, self.axis)
