"""LayerNormalization: normalization of each sample over its last axes."""

from __future__ import annotations

from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import layer_normalization
from renga.initializers import get_initializer
from renga.utils.extents import check_sizes


class LayerNormalization(Link):
    """``(x - mean) / sqrt(variance + eps) gamma + beta``, moments over the last axes.

    ``size`` is the extent of the last axis, or a tuple of those of the last axes; None
    is the last axis of the first input.

    Shapes:
        x, y: (…, size)
        gamma, beta: (size,)

    Source: Ba et al., Layer normalization, 2016.
    """

    gamma: Parameter
    beta: Parameter

    def __init__(
        self,
        size: int | tuple[int, ...] | None = None,
        eps: float = 1e-6,
        initial_gamma: Initial | None = None,
        initial_beta: Initial | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, size=size)
        self.eps = eps
        gamma = 1 if initial_gamma is None else initial_gamma
        beta = 0 if initial_beta is None else initial_beta
        with self.init_scope():
            self.gamma = Parameter(get_initializer(gamma), size)
            self.beta = Parameter(get_initializer(beta), size)

    def forward(self, x: ArrayLike) -> Variable:
        """The normalized ``x``."""
        if not self.gamma.is_initialized:
            self.gamma.initialize(x.shape[-1])
            self.beta.initialize(x.shape[-1])
        return layer_normalization(x, self.gamma, self.beta, self.eps)
