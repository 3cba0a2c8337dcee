"""Convolutions over any number of axes."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

from renga.functions import convolution_nd
from renga.links.convolution.filters import Filters, require_groups
from renga.utils.conv_nd import as_tuple
from renga.utils.extents import MOST_IMAGE_AXES, check_count
from renga.variable import Variable, as_array


class ConvolutionND(Filters):
    """A convolution over ``ndim`` axes with a bias.

    ``in_channels`` None, or left out (``ConvolutionND(ndim, out_channels, ksize)``),
    is taken from the first input. ``ksize``, ``stride``, ``pad`` and ``dilate`` are
    numbers or one number per axis. ``cover_all`` adds padding at the end until every
    element is seen.

    Shapes:
        x: (N, in_channels, d1, …, dn)
        y: (N, out_channels, d1', …, dn')
        W: (out_channels, in_channels / groups, *ksize)
        b: (out_channels,), or None with ``nobias``
    """

    def __init__(
        self,
        ndim: int,
        in_channels: int | None,
        out_channels: Any,
        ksize: Any = None,
        stride: int | tuple[int, ...] = 1,
        pad: int | tuple[int, ...] = 0,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
        cover_all: bool = False,
        dilate: int | tuple[int, ...] = 1,
        groups: int = 1,
    ) -> None:
        super().__init__()
        if ksize is None:
            in_channels, out_channels, ksize = None, in_channels, out_channels
        self.out_channels = out_channels
        ndim = check_count(type(self).__name__, "ndim", ndim, 1, MOST_IMAGE_AXES)
        self.ksize = as_tuple(ksize, ndim)
        self.stride = stride
        self.pad = pad
        self.cover_all = cover_all
        self.dilate = as_tuple(dilate, ndim)
        self.groups = int(groups)
        self._make_filters(in_channels, nobias, initialW, initial_bias, out_channels)

    def _weight_shape(self, in_channels: int) -> tuple[int, ...]:
        require_groups(in_channels, self.out_channels, self.groups)
        channels = in_channels // self.groups
        return (self.out_channels, channels, *self.ksize)

    @classmethod
    def from_params(
        cls,
        W: Any,
        b: Any = None,
        stride: int | tuple[int, ...] = 1,
        pad: int | tuple[int, ...] = 0,
        nobias: bool = False,
        *,
        cover_all: bool = False,
        dilate: int | tuple[int, ...] = 1,
        groups: int = 1,
    ) -> ConvolutionND:
        """A convolution with the given parameter values."""
        out_channels, channels, *ksize = W.shape
        make: Any = cls
        if not issubclass(cls, FixedAxesConvolution):
            make = functools.partial(make, len(ksize))
        return make(
            channels * groups,
            out_channels,
            tuple(ksize),
            stride,
            pad,
            nobias,
            as_array(W),
            as_array(b),
            cover_all,
            dilate,
            groups,
        )

    def forward(self, x: Any) -> Variable:
        """The convolution of ``x``."""
        self._ensure_filters(x)
        return convolution_nd(
            x,
            self.W,
            self.b,
            self.stride,
            self.pad,
            self.cover_all,
            self.dilate,
            self.groups,
        )


class FixedAxesConvolution(ConvolutionND):
    """``ConvolutionND`` over a number of axes that the class knows."""

    _axes: ClassVar[int]

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int,
        ksize: Any,
        stride: int | tuple[int, ...] = 1,
        pad: int | tuple[int, ...] = 0,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
        cover_all: bool = False,
        dilate: int | tuple[int, ...] = 1,
        groups: int = 1,
    ) -> None:
        super().__init__(
            self._axes,
            in_channels,
            out_channels,
            ksize,
            stride,
            pad,
            nobias,
            initialW,
            initial_bias,
            cover_all,
            dilate,
            groups,
        )


class Convolution1D(FixedAxesConvolution):
    """``ConvolutionND`` over one axis."""

    _axes = 1


class Convolution3D(FixedAxesConvolution):
    """``ConvolutionND`` over three axes."""

    _axes = 3
