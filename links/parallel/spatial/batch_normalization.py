"""BatchNormalization over whole images whose parts lie on several ranks."""

from __future__ import annotations

from typing import Any

from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.multi_node_batch_normalization import (
    MultiNodeBatchNormalization,
)
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.links.parallel.spatial.parts import is_whole, of_parts
from renga.links.parallel.spatial.plan import replicate
from renga.variable import Variable


class SpatialBatchNormalization(MultiNodeBatchNormalization):
    """``BatchNormalization`` by the statistics of whole images.

    Every rank has to call it while training. Parameters, their gradients and running
    statistics are the same on all ranks, and those of the serial link. What is no
    image, of three axes or more, is the same on every rank already.

    Args:
        comm: a communicator or a :class:`SpatialGrid`.
        size, decay, eps, dtype, use_gamma, use_beta, initial_gamma, initial_beta: as
            for BatchNormalization.

    Shapes:
        x, y: (N, size, ...) of this rank, or (N, size) on every rank
    """

    _common = True
    algorithm = "common statistics"
    input_layout = output_layout = "parts"

    def __init__(self, comm: Any, size: Any, *args: Any, **kwargs: Any) -> None:
        self.grid = SpatialGrid.of(comm)
        super().__init__(size, self.grid.comm, *args, **kwargs)

    @classmethod
    def from_link(
        cls, link: BatchNormalization, comm: Any, communication_backend: str = "auto"
    ) -> Any:
        """A copy of a BatchNormalization for images in parts."""
        grid = SpatialGrid.of(comm)
        new = super().from_link(link, grid.comm, communication_backend)
        new.grid = grid
        return new

    def _normalize(self, x: Any, gamma: Any, beta: Any, decay: float) -> Variable:
        if x.ndim == 2 or is_whole(x):
            return BatchNormalization._normalize(self, x, gamma, beta, decay)
        return self._normalize_parts(x, gamma, beta, decay)

    @of_parts()
    def _normalize_parts(self, x: Any, gamma: Any, beta: Any, decay: float) -> Variable:
        self._require_channels(x)
        return super()._normalize(x, gamma, beta, decay)

    def _fixed(self, x: Any, gamma: Any, beta: Any) -> Variable:
        if x.ndim == 2 or is_whole(x):
            return super()._fixed(x, gamma, beta)
        return self._fixed_parts(x, gamma, beta)

    @of_parts()
    def _fixed_parts(self, x: Any, gamma: Any, beta: Any) -> Variable:
        self._require_channels(x)
        gamma, beta = replicate(self.grid, gamma), replicate(self.grid, beta)
        return super()._fixed(x, gamma, beta)

    def _require_channels(self, x: Any) -> None:
        over = (0, *range(2, x.ndim))
        axis = over if self.axis is None else {i % x.ndim for i in self.axis}
        if set(axis) != set(over):
            raise ValueError(
                f"SpatialBatchNormalization: expected axis {over} for parts of images, "
                f"{x.shape}, got {self.axis}"
            )
