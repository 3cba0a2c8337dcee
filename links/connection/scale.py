"""Scale: multiplies by a parameter or a given array, and may add another."""

from __future__ import annotations

from renga.core.link import Chain
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions import scale
from renga.links.connection.bias import Bias
from renga.utils.extents import check_sizes


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
