"""BatchNormalization of images that are sharded over several ranks."""

from __future__ import annotations

from typing import Any, TypeVar

from renga.communicators import Communicator
from renga.core.variable import Variable
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.forms import parallel_form
from renga.links.parallel.multi_node_batch_normalization import (
    MultiNodeBatchNormalization,
)
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.parallel.placement.tracker import is_replicated, placed
from renga.parallel.redistribute import with_summed_gradient

_Self = TypeVar("_Self", bound="SpatialBatchNormalization")


@parallel_form(BatchNormalization, "spatial")
class SpatialBatchNormalization(MultiNodeBatchNormalization):
    """``BatchNormalization`` by the statistics of whole images.

    Every rank has to call it while training. Parameters, their gradients and running
    statistics are replicated, and those of the serial link. Arrays of two axes are
    replicated already.

    Args:
        comm: a :class:`SpatialGrid` or a communicator.
        size, decay, eps, dtype, use_gamma, use_beta, initial_gamma, initial_beta: as
            for BatchNormalization.

    Shapes:
        x, y: (N, size, ...) of this rank, or (N, size) on every rank
    """

    _sums_gradients = True
    algorithm = "common statistics"
    input_layout = output_layout = "spatial"

    def __init__(
        self,
        comm: Communicator | SpatialGrid,
        size: int | tuple[int, ...],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        self.grid = SpatialGrid.of(comm)
        super().__init__(size, self.grid.comm, *args, **kwargs)

    @classmethod
    def from_link(
        cls: type[_Self],
        link: BatchNormalization,
        comm: Communicator | SpatialGrid,
        communication_backend: str = "auto",
    ) -> _Self:
        """A copy of a BatchNormalization, for sharded images."""
        grid = SpatialGrid.of(comm)
        new = super().from_link(link, grid.comm, communication_backend)
        new.grid = grid
        return new

    def _normalize(self, x: Any, gamma: Any, beta: Any, decay: float) -> Variable:
        if x.ndim == 2 or is_replicated(x):
            return BatchNormalization._normalize(self, x, gamma, beta, decay)
        return self._normalize_shards(x, gamma, beta, decay)

    @placed()
    def _normalize_shards(
        self, x: Any, gamma: Any, beta: Any, decay: float
    ) -> Variable:
        self._require_channels(x)
        return super()._normalize(x, gamma, beta, decay)

    def _fixed(self, x: Any, gamma: Any, beta: Any) -> Variable:
        if x.ndim == 2 or is_replicated(x):
            return super()._fixed(x, gamma, beta)
        return self._fixed_shards(x, gamma, beta)

    @placed()
    def _fixed_shards(self, x: Any, gamma: Any, beta: Any) -> Variable:
        self._require_channels(x)
        gamma = with_summed_gradient(self.grid.comm, gamma)
        beta = with_summed_gradient(self.grid.comm, beta)
        return super()._fixed(x, gamma, beta)

    def _require_channels(self, x: Any) -> None:
        expected = (0, *range(2, x.ndim))
        axis = expected if self.axis is None else {i % x.ndim for i in self.axis}
        if set(axis) != set(expected):
            raise ValueError(
                f"SpatialBatchNormalization: expected axis {expected} for sharded "
                f"images, {x.shape}, got {self.axis}"
            )
