"""PReLU: a rectifier whose slope is learnt."""

from __future__ import annotations

from typing import Any

from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.variable import Variable
from renga.functions import prelu


class PReLU(Link):
    """``x``, or ``W x`` where ``x`` is negative.

    Shapes:
        x, y: (N, *shape, …)
        W: shape; () is one slope for all

    Source: He et al., Delving deep into rectifiers, 2015.
    """

    W: Parameter

    def __init__(self, shape: int | tuple[int, ...] = (), init: Any = 0.25) -> None:
        super().__init__()
        with self.init_scope():
            self.W = Parameter(init, shape)

    def forward(self, x: Any) -> Variable:
        """The rectified ``x``."""
        return prelu(x, self.W)
