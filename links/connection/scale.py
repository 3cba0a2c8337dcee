"""Links that add or multiply by an array, learnt or given."""

from __future__ import annotations

from renga.core.link import Chain, Link
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions import bias, scale
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


class Scale(Chain):
    """``x W``, with the first axis of ``W`` being axis ``axis`` of ``x``.

    Without ``W_shape`` there is no parameter and ``W`` is the second input. With
    ``bias_term`` an array of that shape, or of ``bias_shape`` if there is no
    parameter, is added.

    Shapes:
        x, y: (…, *W.shape, …)
        W: W_shape, initially ones

    Raises:
        ValueError: the shape of the bias is missing.
    """

    W: Parameter
    bias: Bias

    def __init__(
        self,
        axis: int = 1,
        W_shape: tuple[int, ...] | None = None,
        bias_term: bool = False,
        bias_shape: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, W_shape=W_shape, bias_shape=bias_shape)
        self.axis = axis
        if W_shape is not None:
            bias_shape = W_shape
        if bias_term and bias_shape is None:
            raise ValueError(
                "Scale: expected a bias_shape for a bias_term without W_shape"
            )
        with self.init_scope():
            if W_shape is not None:
                self.W = Parameter(1, W_shape)
            if bias_term:
                self.bias = Bias(axis, bias_shape)

    def forward(self, *xs: ArrayLike) -> Variable:
        """The product; ValueError for another number of inputs."""
        if hasattr(self, "W"):
            (x,) = xs
            y = scale(x, self.W, self.axis)
        else:
            x, W = xs
            y = scale(x, W, self.axis)
        return self.bias(y) if hasattr(self, "bias") else y
