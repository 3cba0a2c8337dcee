"""WeightStandardization: weights of mean 0 and variance 1."""

from __future__ import annotations

from renga import functions as F
from renga.core.link import Link
from renga.core.variable import Variable
from renga.link_hooks.weight_hook import WeightHook


class WeightStandardization(WeightHook):
    """Standardizes a weight over all but its first axis, for every call of the link.

    ``(W - mean) / sqrt(variance + eps)`` replaces the parameter.

    Raises:
        ValueError: the link has no parameter ``weight_name``.
        NotImplementedError: used in a ``with`` statement.

    Source: Qiao et al., Weight standardization, 2019.
    """

    name = "WeightStandardization"

    def __init__(
        self, *, eps: float = 1e-5, weight_name: str = "W", name: str | None = None
    ) -> None:
        super().__init__(weight_name, name)
        self.eps = eps

    def normalize_weight(self, link: Link) -> Variable:
        """The standardized weight of ``link``."""
        W = self._weight(link)
        xp = link.xp
        rows = F.reshape(W, (len(W), -1))
        ones = xp.ones(rows.shape[1], W.dtype)
        y = F.layer_normalization(rows, ones, xp.zeros_like(ones), self.eps)
        return F.reshape(y, W.shape)
