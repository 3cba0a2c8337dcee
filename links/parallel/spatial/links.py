"""Links of sharded images: linear, pooling and convolutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from renga.communicators import Communicator
from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.links.connection.linear import Linear
from renga.links.convolution.convolution import Convolution2D, ConvolutionND
from renga.links.convolution.deconvolution import Deconvolution2D, DeconvolutionND
from renga.links.parallel.forms import ReplicatedLink, parallel_form
from renga.links.parallel.spatial.convolution import (
    spatial_convolution,
    spatial_deconvolution,
)
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.links.parallel.spatial.image import gather_image
from renga.links.parallel.spatial.pooling import (
    spatial_average_pooling,
    spatial_max_pooling,
)
from renga.parallel.placement.tracker import is_replicated


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

    def forward(self, x: ArrayLike, n_batch_axes: int = 1) -> Variable:
        """The replicated result."""
        if x.ndim > 2 and not is_replicated(x):
            x = gather_image(self.grid, x)
        is_first = not self.W.is_initialized
        y = super().forward(x, n_batch_axes)
        if not is_first:
            return y
        self._broadcast()
        return super().forward(x, n_batch_axes)


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


class _SpatialConvolution(SpatialLink):
    W: Parameter
    b: Parameter | None
    stride: Any
    pad: Any
    dilate: Any
    groups: int
    _weight_shape: Callable[[int], tuple[int, ...]]

    def _apply(
        self, function: Callable[..., Variable], x: Any, option: Any
    ) -> Variable:
        """Applies a function to ``x`` and the parameters, after initializing them."""
        if not self.W.is_initialized:
            self.W.initialize(self._weight_shape(x.shape[1]))
            self._broadcast()
        parameters = self.W, self.b, self.stride, self.pad, option
        options = {"dilate": self.dilate, "groups": self.groups}
        return function(self.grid, x, *parameters, **options, name=type(self).__name__)


class _Convolution(_SpatialConvolution):
    cover_all = False

    def forward(self, x: Any) -> Variable:
        """This rank's shard of the convolution.

        That of replicated images of one pixel is replicated.
        """
        if is_replicated(x) and set(x.shape[2:]) == {1} and self.W.is_initialized:
            y: Variable = super().forward(x)  # type: ignore[misc]
            return y
        return self._apply(spatial_convolution, x, self.cover_all)


class _Deconvolution(_SpatialConvolution):
    outsize: Any

    def forward(self, x: ArrayLike) -> Variable:
        """This rank's shard of the deconvolution."""
        return self._apply(spatial_deconvolution, x, self.outsize)


@parallel_form(Convolution2D, "spatial")
class SpatialConvolution2D(_Convolution, Convolution2D):
    """``Convolution2D`` of images that are sharded over a grid of ranks.

    Neighbours exchange halos, the pixels that windows of the other rank need, while
    those of the own shard are computed. The shards of ``y`` together are the
    convolution of the whole image. Parameters and their gradients are those of the
    serial link, on every rank.

    Args:
        comm: a :class:`SpatialGrid`, or a communicator, for bands of rows.
        in_channels, …, groups: as for Convolution2D.

    Shapes:
        x: (N, in_channels, rows, columns of this rank)
        y: (N, out_channels, rows, columns of this rank)
        W: (out_channels, in_channels / groups, *ksize)
        b: (out_channels,), or None with ``nobias``
    """


@parallel_form(ConvolutionND, "spatial")
class SpatialConvolutionND(_Convolution, ConvolutionND):
    """``ConvolutionND`` of images that are sharded over a grid of ranks.

    Args:
        comm: a :class:`SpatialGrid`, or a communicator, for bands along the first
            spatial axis.
        ndim, in_channels, …, groups: as for ConvolutionND.

    Shapes:
        x: (N, in_channels, extents of this rank)
        y: (N, out_channels, extents of this rank)
        W: (out_channels, in_channels / groups, *ksize)
        b: (out_channels,), or None with ``nobias``
    """


@parallel_form(Deconvolution2D, "spatial")
class SpatialDeconvolution2D(_Deconvolution, Deconvolution2D):
    """``Deconvolution2D`` of images that are sharded over a grid of ranks.

    The shards of ``y`` together are the deconvolution of the whole image. Parameters
    and their gradients are those of the serial link, on every rank.

    Args:
        comm: a :class:`SpatialGrid`, or a communicator, for bands of rows.
        in_channels, …, groups: as for Deconvolution2D; ``outsize`` are the extents of
            the whole result.

    Shapes:
        x: (N, in_channels, rows, columns of this rank)
        y: (N, out_channels, rows, columns of this rank)
        W: (in_channels, out_channels / groups, *ksize)
        b: (out_channels,), or None with ``nobias``
    """


@parallel_form(DeconvolutionND, "spatial")
class SpatialDeconvolutionND(_Deconvolution, DeconvolutionND):
    """``DeconvolutionND`` of images that are sharded over a grid of ranks.

    Args:
        comm: a :class:`SpatialGrid`, or a communicator, for bands along the first
            spatial axis.
        ndim, in_channels, …, groups: as for DeconvolutionND; ``outsize`` are the
            extents of the whole result.

    Shapes:
        x: (N, in_channels, extents of this rank)
        y: (N, out_channels, extents of this rank)
        W: (in_channels, out_channels / groups, *ksize)
        b: (out_channels,), or None with ``nobias``
    """
