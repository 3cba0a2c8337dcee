"""Convolutions of images in parts, as links."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from renga.links.convolution.convolution_2d import Convolution2D
from renga.links.convolution.convolution_nd import ConvolutionND
from renga.links.convolution.deconvolution_2d import Deconvolution2D
from renga.links.convolution.deconvolution_nd import DeconvolutionND
from renga.links.parallel.spatial.convolution.functions import (
    spatial_convolution,
    spatial_deconvolution,
)
from renga.links.parallel.spatial.link import SpatialLink
from renga.parameter import Parameter
from renga.variable import Variable


class _Windowed(SpatialLink):
    W: Parameter
    b: Parameter | None
    stride: Any
    pad: Any
    dilate: Any
    groups: int
    _weight_shape: Callable[[int], tuple[int, ...]]

    def _apply(self, function: Callable[..., Variable], x: Any, last: Any) -> Variable:
        """The function by its parameters, which have their shape by now."""
        if not self.W.is_initialized:
            self.W.initialize(self._weight_shape(x.shape[1]))
            self._share()
        parameters = self.W, self.b, self.stride, self.pad, last
        kept = {"dilate": self.dilate, "groups": self.groups}
        return function(self.grid, x, *parameters, **kept, name=type(self).__name__)


class _Convolution(_Windowed):
    cover_all = False

    def forward(self, x: Any) -> Variable:
        """This rank's part of the convolution."""
        return self._apply(spatial_convolution, x, self.cover_all)


class _Deconvolution(_Windowed):
    outsize: Any

    def forward(self, x: Any) -> Variable:
        """This rank's part of the deconvolution."""
        return self._apply(spatial_deconvolution, x, self.outsize)


class SpatialConvolution2D(_Convolution, Convolution2D):
    """``Convolution2D`` of images of which each rank has a part.

    Neighbours swap the pixels that the kernel reaches over the edge, while the others
    are computed; the parts of ``y`` put together equal the convolution of the whole
    image. Parameters and their gradients are those of the serial link on every rank.

    Args:
        comm: a communicator, for bands of rows, or a :class:`SpatialGrid`.
        in_channels, …, groups: as for Convolution2D.

    Shapes:
        x: (N, in_channels, rows, columns of this rank)
        y: (N, out_channels, rows, columns of this rank)
        W: (out_channels, in_channels / groups, *ksize)
        b: (out_channels,), or None with ``nobias``
    """


class SpatialConvolutionND(_Convolution, ConvolutionND):
    """``ConvolutionND`` of images of which each rank has a part.

    Args:
        comm: a communicator, for bands along the first axis, or a
            :class:`SpatialGrid`.
        ndim, in_channels, …, groups: as for ConvolutionND.

    Shapes:
        x: (N, in_channels, extents of this rank)
        y: (N, out_channels, extents of this rank)
        W: (out_channels, in_channels / groups, *ksize)
        b: (out_channels,), or None with ``nobias``
    """


class SpatialDeconvolution2D(_Deconvolution, Deconvolution2D):
    """``Deconvolution2D`` of images of which each rank has a part.

    The parts of ``y`` put together equal the deconvolution of the whole image.
    Parameters and their gradients are those of the serial link on every rank.

    Args:
        comm: a communicator, for bands of rows, or a :class:`SpatialGrid`.
        in_channels, …, groups: as for Deconvolution2D; ``outsize`` are the extents of
            the whole result.

    Shapes:
        x: (N, in_channels, rows, columns of this rank)
        y: (N, out_channels, rows, columns of this rank)
        W: (in_channels, out_channels / groups, *ksize)
        b: (out_channels,), or None with ``nobias``
    """


class SpatialDeconvolutionND(_Deconvolution, DeconvolutionND):
    """``DeconvolutionND`` of images of which each rank has a part.

    Args:
        comm: a communicator, for bands along the first axis, or a
            :class:`SpatialGrid`.
        ndim, in_channels, …, groups: as for DeconvolutionND; ``outsize`` are the
            extents of the whole result.

    Shapes:
        x: (N, in_channels, extents of this rank)
        y: (N, out_channels, extents of this rank)
        W: (in_channels, out_channels / groups, *ksize)
        b: (out_channels,), or None with ``nobias``
    """
