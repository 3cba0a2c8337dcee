"""Replacement of serial links by spatial ones with the same weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from renga.communicators import Communicator
from renga.core.link import Link
from renga.links.connection.linear import Linear
from renga.links.convolution.convolution_2d import Convolution2D
from renga.links.convolution.convolution_nd import ConvolutionND
from renga.links.convolution.deconvolution_2d import Deconvolution2D
from renga.links.convolution.deconvolution_nd import DeconvolutionND
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.spatial.batch_normalization import SpatialBatchNormalization
from renga.links.parallel.spatial.convolution.halo_convolution import halo_convolution
from renga.links.parallel.spatial.convolution.links import (
    SpatialConvolution2D,
    SpatialConvolutionND,
    SpatialDeconvolution2D,
    SpatialDeconvolutionND,
)
from renga.links.parallel.spatial.grid import SpatialGrid, extents_of
from renga.links.parallel.spatial.linear import SpatialLinear
from renga.links.parallel.spatial.window import SpatialWindow
from renga.parallel.conversion.replacement import LinkReplacement
from renga.parallel.conversion.tracing import Call, trace
from renga.parallel.redistribute.cost import Cost, rates_of

_MAKERS: dict[type, Callable[[Any, Any], Any]] = {
    Convolution2D: SpatialConvolution2D.from_link,
    ConvolutionND: SpatialConvolutionND.from_link,
    Deconvolution2D: SpatialDeconvolution2D.from_link,
    DeconvolutionND: SpatialDeconvolutionND.from_link,
    BatchNormalization: SpatialBatchNormalization.from_link,
    Linear: SpatialLinear.from_link,
}


def spatial_replacements(
    model: Link, comm: Communicator | SpatialGrid, inputs: Sequence[Any]
) -> list[LinkReplacement]:
    """A replacement for every link of a model that has parameters of its own.

    The new links take this rank's shard of the images.

    Args:
        comm: a :class:`SpatialGrid`, or a communicator, for bands of rows.
        inputs: examples of replicated inputs, from which costs are known; or none.
    """
    grid = SpatialGrid.of(comm)
    calls: Sequence[Call] = []
    if inputs:
        calls = trace(model, inputs, tuple(_MAKERS)).calls
    replacements = []
    for link in dict.fromkeys(model.links()):
        if not link._params:
            continue
        make = _MAKERS.get(type(link))
        if make is None:
            reason = "correct only for inputs that are replicated"
            replacements.append(LinkReplacement(link, None, reason))
            continue
        own = [call for call in calls if call.link is link]
        cost = _cost(link, grid, own[0]) if own else None
        replacements.append(LinkReplacement(link, make(link, grid), "", cost))
    return replacements


def _cost(link: Any, grid: SpatialGrid, call: Call) -> Cost:
    """Of a step: halo exchanges, and the all-reduce of the gradients."""
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
    return Cost(messages * rates.alpha + moved * rates.beta, 0, moved)


def _halo_size(link: Any, grid: SpatialGrid, call: Call, transposed: bool) -> float:
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
