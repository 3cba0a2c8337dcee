"""Linear of sharded images."""

from __future__ import annotations

from typing import Any

from renga.core.variable import Variable
from renga.links.connection.linear import Linear
from renga.links.parallel.forms import parallel_form
from renga.links.parallel.spatial.image import gather_image
from renga.links.parallel.spatial.link import SpatialLink
from renga.parallel.placement.tracker import is_replicated


@parallel_form(Linear, "spatial")
class SpatialLinear(SpatialLink, Linear):
    """``Linear`` of images that are sharded over a grid of ranks.

    It gathers the whole images first; the result is replicated. Arrays of two axes are
    replicated already.

    Args:
        comm: a :class:`SpatialGrid`, or a communicator, for bands of rows.
        in_size, …: as for Linear.

    Shapes:
        x: (N, C, ...) of this rank, or (N, in_size) on every rank
        y: (N, out_size)
    """

    algorithm = "all-gather"
    output_layout = "replicated"

    def forward(self, x: Any, n_batch_axes: int = 1) -> Variable:
        """The replicated result."""
        if x.ndim > 2 and not is_replicated(x):
            x = gather_image(self.grid, x)
        is_first = not self.W.is_initialized
        y = super().forward(x, n_batch_axes)
        if not is_first:
            return y
        self._broadcast()
        return super().forward(x, n_batch_axes)
