"""What links of sharded images have in common."""

from __future__ import annotations

from renga.communicators import Communicator
from renga.links.parallel.replicated_link import ReplicatedLink
from renga.links.parallel.spatial.grid import SpatialGrid


class SpatialLink(ReplicatedLink):
    """A link with replicated parameters that is applied to sharded images.

    The first argument is a :class:`SpatialGrid`, or a communicator, for bands of rows;
    the others are those of the serial link, whose name follows ``Spatial``.
    """

    grid: SpatialGrid
    algorithm = "halo exchange"
    input_layout = output_layout = "spatial"

    def _set_ranks(self, comm: Communicator | SpatialGrid) -> None:
        self.grid = SpatialGrid.of(comm)
        super()._set_ranks(self.grid.comm)
