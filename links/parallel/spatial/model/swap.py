"""Links of images in parts in the place of serial ones, with their weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from renga.link import Link
from renga.links.connection.linear import Linear
from renga.links.convolution.convolution_2d import Convolution2D
from renga.links.convolution.convolution_nd import ConvolutionND
from renga.links.convolution.deconvolution_2d import Deconvolution2D
from renga.links.convolution.deconvolution_nd import DeconvolutionND
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.channel.cost import Cost, rates_of
from renga.links.parallel.channel.swap import Swap
from renga.links.parallel.channel.trace import Call, trace
from renga.links.parallel.spatial.batch_normalization import SpatialBatchNormalization
from renga.links.parallel.spatial.convolution.links import (
    SpatialConvolution2D,
    SpatialConvolutionND,
    SpatialDeconvolution2D,
    SpatialDeconvolutionND,
)
from renga.links.parallel.spatial.convolution.passage import passage
from renga.links.parallel.spatial.grid import SpatialGrid, lengths
from renga.links.parallel.spatial.linear import SpatialLinear
from renga.links.parallel.spatial.window import SpatialWindow

_SWAPS: dict[type, Callable[[Any, Any], Any]] = {
    Convolution2D: SpatialConvolution2D.from_link,
    ConvolutionND: SpatialConvolutionND.from_link,
    Deconvolution2D: SpatialDeconvolution2D.from_link,
    DeconvolutionND: SpatialDeconvolutionND.from_link,
    BatchNormalization: SpatialBatchNormalization.from_link,
    Linear: SpatialLinear.from_link,
}


def spatial_swaps(model: Link, comm: Any, inputs: Sequence[Any]) -> list[Swap]:
    """A swap for every link of a model that has parameters of its own.

    The new model takes this rank's part of the images.

    Args:
        comm: a communicator, for bands of rows, or a :class:`SpatialGrid`.
        inputs: examples of whole inputs, which tell what will travel; or none.
    """
    grid = SpatialGrid.of(comm)
    calls: Sequence[Call] = []
    if inputs:
        calls = trace(model, inputs, tuple(_SWAPS)).calls
    swaps = []
    for link in dict.fromkeys(model.links()):
        if not link._params:
            continue
        make = _SWAPS.get(type(link))
        if make is None:
            reason = "right only for what is whole on every rank"
            swaps.append(Swap(link, None, reason))
            continue
        own = [call for call in calls if call.link is link]
        cost = _cost(link, grid, own[0]) if own else None
        swaps.append(Swap(link, make(link, grid), "", cost))
    return swaps


def _cost(link: Any, grid: SpatialGrid, call: Call) -> Cost:
    """Of a step forward and back: halos, and the sum of the gradients."""
    rates, messages = rates_of(grid.comm), 0
    parameters = 4 * sum(p.size for p in link.params())
    moved = 0.0
    if grid.size > 1 and not isinstance(link, Linear):
        messages, moved = 2, 2 * parameters * (grid.size - 1) / grid.size
    if isinstance(link, Linear):
        part = 4 * math.prod(call.x_shape) * (grid.size - 1) / grid.size
        messages, moved = messages + 1, moved + part
    elif not isinstance(link, BatchNormalization):
        for up in (False, True):
            pixels = _halo(link, grid, call, up)
            messages, moved = messages + bool(pixels), moved + 4 * pixels
    return Cost(messages * rates.alpha + moved * rates.beta, 0, moved)


def _halo(link: Any, grid: SpatialGrid, call: Call, up: bool) -> float:
    """How many numbers rank 0 receives, of x forward or of gy on the way back."""
    window = SpatialWindow.of(
        link.W.shape[2:], link.stride, link.pad, link.dilate, link.W.ndim - 2
    )
    large, small = call.x_shape, call.y_shape
    if isinstance(link, (Deconvolution2D, DeconvolutionND)):
        large, small = small, large
    source, result = (small, large) if up else (large, small)
    slabs = passage(grid, window, source[2:], result[2:], up).halo.wanted
    return math.prod(source[:2]) * sum(math.prod(lengths(box)) for box in slabs)
