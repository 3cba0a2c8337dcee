"""BatchRenormalization: batch normalization with running statistics."""

from __future__ import annotations

from typing import Any

from renga.core.types import ArrayLike, DTypeLike, Initial
from renga.core.variable import Variable
from renga.functions import batch_renormalization
from renga.links.normalization.batch_normalization import BatchNormalization


class BatchRenormalization(BatchNormalization):
    """Batch normalization corrected towards the running statistics in training.

    The ratio of the deviations is kept in [1 / rmax, rmax], the difference of the means
    over the running deviation in [-dmax, dmax]; otherwise as ``BatchNormalization``.

    Source: Ioffe, Batch renormalization, 2017.
    """

    def __init__(
        self,
        size: int | tuple[int, ...],
        rmax: float = 1,
        dmax: float = 0,
        decay: float = 0.9,
        eps: float = 2e-5,
        dtype: DTypeLike | None = None,
        use_gamma: bool = True,
        use_beta: bool = True,
        initial_gamma: Initial | None = None,
        initial_beta: Initial | None = None,
        initial_avg_mean: Initial | None = None,
        initial_avg_var: Initial | None = None,
    ) -> None:
        super().__init__(
            size,
            decay,
            eps,
            dtype,
            use_gamma,
            use_beta,
            initial_gamma,
            initial_beta,
            None,
            initial_avg_mean,
            initial_avg_var,
        )
        self.rmax = rmax
        self.dmax = dmax
        # Attributes that old scripts read; the function sets neither.
        self.r: Any = None
        self.d: Any = None

    def forward(self, x: ArrayLike, finetune: bool = False) -> Variable:  # type: ignore[override]
        """The normalized ``x``; ``finetune`` as in ``BatchNormalization``."""
        return super().forward(x, finetune=finetune)

    def _normalize(self, x: Any, gamma: Any, beta: Any, decay: float) -> Variable:
        return batch_renormalization(
            x,
            gamma,
            beta,
            self.rmax,
            self.dmax,
            self.eps,
            self.avg_mean,
            self.avg_var,
            decay,
            update_statistics=True,
        )
