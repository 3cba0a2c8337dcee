"""Links: pooling of sharded images."""

from __future__ import annotations

from renga.communicators import Communicator
from renga.core.link import Link
from renga.core.types import Extents
from renga.core.variable import Variable
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.links.parallel.spatial.pooling import (
    spatial_average_pooling,
    spatial_max_pooling,
)


class SpatialMaxPooling2D(Link):
    """``max_pooling_2d`` of images that are sharded over a grid of ranks.

    Args:
        comm: a :class:`SpatialGrid`, or a communicator, for bands of rows.
        ksize, stride, pad, cover_all: as for ``max_pooling_2d``.

    Shapes:
        x, y: (N, C, rows, columns of this rank)
    """

    def __init__(
        self,
        comm: Communicator | SpatialGrid,
        ksize: Extents,
        stride: Extents | None = None,
        pad: Extents = 0,
        cover_all: bool = True,
    ) -> None:
        super().__init__()
        self.grid = SpatialGrid.of(comm)
        self.ksize, self.stride, self.pad = ksize, stride, pad
        self.cover_all = cover_all

    def forward(self, x: Variable) -> Variable:
        """This rank's shard of the maxima."""
        window = self.ksize, self.stride, self.pad
        y: Variable = spatial_max_pooling(self.grid, x, *window, self.cover_all)
        return y


class SpatialAveragePooling2D(Link):
    """``average_pooling_2d`` of images that are sharded over a grid of ranks.

    Args:
        comm: a :class:`SpatialGrid`, or a communicator, for bands of rows.
        ksize, stride, pad: as for ``average_pooling_2d``.

    Shapes:
        x, y: (N, C, rows, columns of this rank)
    """

    def __init__(
        self,
        comm: Communicator | SpatialGrid,
        ksize: Extents,
        stride: Extents | None = None,
        pad: Extents = 0,
    ) -> None:
        super().__init__()
        self.grid = SpatialGrid.of(comm)
        self.ksize, self.stride, self.pad = ksize, stride, pad

    def forward(self, x: Variable) -> Variable:
        """This rank's shard of the means."""
        return spatial_average_pooling(self.grid, x, self.ksize, self.stride, self.pad)
