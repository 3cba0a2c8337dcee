"""Transposes of convolutions over any number of axes."""

from __future__ import annotations

from typing import Any, ClassVar

from renga.functions import deconvolution_nd
from renga.links.convolution.filters import Filters, require_groups
from renga.utils.conv_nd import as_tuple
from renga.utils.extents import MOST_IMAGE_AXES, check_count
from renga.variable import Variable


class DeconvolutionND(Filters):
    """The transpose of a convolution over ``ndim`` axes, with a bias.

    ``in_channels`` None, or left out (``DeconvolutionND(ndim, out_channels, ksize)``),
    is taken from the first input. ``ksize``, ``stride``, ``pad`` and ``dilate`` are
    numbers or one number per axis; ``outsize`` chooses among the sizes that the
    convolution would take to that of the input.

    Shapes:
        x: (N, in_channels, d1, …, dn)
        y: (N, out_channels, d1', …, dn')
        W: (in_channels, out_channels / groups, *ksize)
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
        outsize: tuple[int, ...] | None = None,
        initialW: Any = None,
        initial_bias: Any = None,
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
        self.outsize = outsize
        self.dilate = as_tuple(dilate, ndim)
        self.groups = int(groups)
        self._make_filters(in_channels, nobias, initialW, initial_bias, out_channels)

    def _weight_shape(self, in_channels: int) -> tuple[int, ...]:
        require_groups(in_channels, self.out_channels, self.groups)
        channels = self.out_channels // self.groups
        return (in_channels, channels, *self.ksize)

    def forward(self, x: Any) -> Variable:
        """The deconvolution of ``x``."""
        self._ensure_filters(x)
        return deconvolution_nd(
            x,
            self.W,
            self.b,
            self.stride,
            self.pad,
            self.outsize,
            self.dilate,
            self.groups,
        )


class FixedAxesDeconvolution(DeconvolutionND):
    """``DeconvolutionND`` over a number of axes that the class knows."""

    _axes: ClassVar[int]

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int,
        ksize: Any,
        stride: int | tuple[int, ...] = 1,
        pad: int | tuple[int, ...] = 0,
        nobias: bool = False,
        outsize: tuple[int, ...] | None = None,
        initialW: Any = None,
        initial_bias: Any = None,
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
            outsize,
            initialW,
            initial_bias,
            dilate,
            groups,
        )


class Deconvolution1D(FixedAxesDeconvolution):
    """``DeconvolutionND`` over one axis."""

    _axes = 1


class Deconvolution3D(FixedAxesDeconvolution):
    """``DeconvolutionND`` over three axes."""

    _axes = 3
