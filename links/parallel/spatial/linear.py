"""Linear of images in parts."""

from __future__ import annotations

from typing import Any

from renga.links.connection.linear import Linear
from renga.links.parallel.spatial.image import gather_image
from renga.links.parallel.spatial.link import SpatialLink
from renga.links.parallel.spatial.parts import is_whole
from renga.variable import Variable


class SpatialLinear(SpatialLink, Linear):
    """``Linear`` of whole images of which each rank has a part.

    Every rank gets the whole images, and the same result. What is no image, of three
    axes or more, is the same on every rank already.

    Args:
        comm: a communicator, for bands of rows, or a :class:`SpatialGrid`.
        in_size, …: as for Linear.

    Shapes:
        x: (N, C, ...) of this rank, or (N, in_size) on every rank
        y: (N, out_size)
    """

    algorithm = "whole images"
    output_layout = "replicated"

    def forward(self, x: Any, n_batch_axes: int = 1) -> Variable:
        """The same on every rank."""
        if x.ndim > 2 and not is_whole(x):
            x = gather_image(self.grid, x)
        starts = not self.W.is_initialized
        y = super().forward(x, n_batch_axes)
        if not starts:
            return y
        self._share()
        return super().forward(x, n_batch_axes)
