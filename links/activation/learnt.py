"""Activations with parameters that are learnt."""

from __future__ import annotations

from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import prelu, swish
from renga.utils.extents import check_sizes


class PReLU(Link):
    """``x``, or ``W x`` where ``x`` is negative.

    Shapes:
        x, y: (N, *shape, …)
        W: shape; () is one slope for all

    Source: He et al., Delving deep into rectifiers, 2015.
    """

    W: Parameter

    def __init__(self, shape: int | tuple[int, ...] = (), init: Initial = 0.25) -> None:
        super().__init__()
        check_sizes(self, shape=shape)
        with self.init_scope():
            self.W = Parameter(init, shape)

    def forward(self, x: ArrayLike) -> Variable:
        """The rectified ``x``."""
        return prelu(x, self.W)


class Swish(Link):
    """``x sigmoid(beta x)``.

    ``beta_shape`` None is taken from the first input, a beta for each element of a
    sample.

    Shapes:
        x, y: (N, *beta_shape, …)
        beta: beta_shape; () is one beta for all

    Source: Ramachandran et al., Searching for activation functions, 2017.
    """

    beta: Parameter

    def __init__(
        self, beta_shape: int | tuple[int, ...] | None, beta_init: Initial = 1.0
    ) -> None:
        super().__init__()
        check_sizes(self, beta_shape=beta_shape)
        with self.init_scope():
            self.beta = Parameter(beta_init, beta_shape)

    def forward(self, x: ArrayLike) -> Variable:
        """The activation of ``x``."""
        if not self.beta.is_initialized:
            self.beta.initialize(x.shape[1:])
        return swish(x, self.beta)
