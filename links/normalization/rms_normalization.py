"""RMSNormalization: each sample divided by its root mean square."""

from __future__ import annotations

from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import rms_normalization
from renga.initializers import get_initializer
from renga.utils.extents import check_sizes


class RMSNormalization(Link):
    """``x / sqrt(mean of x² + eps) gamma``, the mean over the last axes.

    ``size`` is the extent of the last axis, or a tuple of those of the last axes; None
    is the last axis of the first input.

    Shapes:
        x, y: (…, size)
        gamma: (size,)

    Source: Zhang and Sennrich, Root mean square layer normalization, 2019.
    """

    gamma: Parameter

    def __init__(
        self,
        size: int | tuple[int, ...] | None = None,
        eps: float = 1e-6,
        initial_gamma: Initial | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, size=size)
        self.eps = eps
        gamma = 1 if initial_gamma is None else initial_gamma
        with self.init_scope():
            self.gamma = Parameter(get_initializer(gamma), size)

    def forward(self, x: ArrayLike) -> Variable:
        """The normalized ``x``."""
        if not self.gamma.is_initialized:
            self.gamma.initialize(x.shape[-1])
        return rms_normalization(x, self.gamma, self.eps)
