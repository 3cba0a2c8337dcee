"""Links: convolutions of sharded images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from renga.core.parameter import Parameter
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.links.convolution.convolution_2d import Convolution2D
from renga.links.convolution.convolution_nd import ConvolutionND
from renga.links.convolution.deconvolution_2d import Deconvolution2D
from renga.links.convolution.deconvolution_nd import DeconvolutionND
from renga.links.parallel.forms import parallel_form
from renga.links.parallel.spatial.convolution.functions import (
    spatial_convolution,
    spatial_deconvolution,
)
from renga.links.parallel.spatial.link import SpatialLink
from renga.parallel.placement.tracker import is_replicated


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
