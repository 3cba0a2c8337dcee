"""PReLU: a rectifier whose slope is learnt."""

from __future__ import annotations

from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import prelu
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
