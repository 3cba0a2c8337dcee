"""Swish: a sigmoid-weighted linear unit whose sharpness is learnt."""

from __future__ import annotations

from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import swish
from renga.utils.extents import check_sizes


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
