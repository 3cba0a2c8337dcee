"""Replacement of serial links by spatial ones with the same weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from renga.communicators import Communicator
from renga.core.link import Link
from renga.links.connection.linear import Linear
from renga.links.convolution.deconvolution_2d import Deconvolution2D
from renga.links.convolution.deconvolution_nd import DeconvolutionND
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.forms import FORMS
from renga.links.parallel.spatial.convolution.halo_convolution import halo_convolution
from renga.links.parallel.spatial.grid import SpatialGrid, extents_of
from renga.links.parallel.spatial.window import SpatialWindow
from renga.parallel.conversion.replacement import Replacer
from renga.parallel.conversion.tracing import CalledLink, trace
from renga.parallel.redistribute.cost import StepCost, rates_of


class SpatialReplacer(Replacer):
    """Makes links that take this rank's shard of images.

    Args:
        model: whose links are replaced.
        comm: a :class:`SpatialGrid`, or a communicator, for bands of rows.
        inputs: examples of replicated inputs, from which costs are known; or none.
    """

    strategy = "spatial"
    others = "correct only for inputs that are replicated"

    def __init__(
        self, model: Link, comm: Communicator | SpatialGrid, inputs: Sequence[object]
    ) -> None:
        kinds = tuple(FORMS["spatial"])
        calls = trace(model, inputs, kinds).calls
        super().__init__(model, SpatialGrid.of(comm), calls)

    def cost(self, link: Link) -> StepCost | None:
        """Of a step: halo exchanges, and the all-reduce of the gradients."""
        if not self.calls_of(link):
            return None
        grid, call = self.comm, self.calls_of(link)[0]
        rates, messages = rates_of(grid.comm), 0
        parameters = 4 * sum(p.size for p in link.params())
        moved = 0.0
        if grid.size > 1 and not isinstance(link, Linear):
            messages, moved = 2, 2 * parameters * (grid.size - 1) / grid.size
        if isinstance(link, Linear):
            gathered = 4 * math.prod(call.x_shape) * (grid.size - 1) / grid.size
            messages, moved = messages + 1, moved + gathered
        elif not isinstance(link, BatchNormalization):
            for transposed in (False, True):  # forward and backward, or the reverse
                count = _halo_size(link, grid, call, transposed)
                messages, moved = messages + bool(count), moved + 4 * count
        return StepCost(messages * rates.alpha + moved * rates.beta, 0, moved)


def _halo_size(
    link: Any, grid: SpatialGrid, call: CalledLink, transposed: bool
) -> float:
    """The number of elements of x, or of gy, that rank 0 receives."""
    window = SpatialWindow.of(
        link.W.shape[2:], link.stride, link.pad, link.dilate, link.W.ndim - 2
    )
    large, small = call.x_shape, call.y_shape
    if isinstance(link, (Deconvolution2D, DeconvolutionND)):
        large, small = small, large
    source, result = (small, large) if transposed else (large, small)
    halos = halo_convolution(
        grid, window, source[2:], result[2:], transposed
    ).exchange.requested
    return math.prod(source[:2]) * sum(math.prod(extents_of(box)) for box in halos)
