"""Convolutions over any number of axes."""

from __future__ import annotations

import functools
from typing import Any

from renga.functions import convolution_nd
from renga.initializers import _get_initializer
from renga.link import Link
from renga.links.convolution.convolution_2d import require_groups
from renga.parameter import Parameter
from renga.utils.conv_nd import as_tuple
from renga.variable import Variable, as_array


class ConvolutionND(Link):
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

    W: Parameter
    b: Parameter | None

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
        self.ksize = as_tuple(ksize, ndim)
        self.stride = stride
        self.pad = pad
        self.cover_all = cover_all
        self.dilate = as_tuple(dilate, ndim)
        self.groups = int(groups)
        with self.init_scope():
            self.W = Parameter(_get_initializer(initialW))
            if in_channels is not None:
                self._initialize_weight(in_channels)
            if nobias:
                self.b = None
            else:
                bias = 0 if initial_bias is None else initial_bias
                self.b = Parameter(_get_initializer(bias), out_channels)

    def _initialize_weight(self, in_channels: int) -> None:
        require_groups(in_channels, self.out_channels, self.groups)
        channels = in_channels // self.groups
        self.W.initialize((self.out_channels, channels, *self.ksize))

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
        if not issubclass(cls, (Convolution1D, Convolution3D)):
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
        if self.W.array is None:
            self._initialize_weight(x.shape[1])
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


class Convolution1D(ConvolutionND):
    """``ConvolutionND`` over one axis."""

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
            1,
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


class Convolution3D(ConvolutionND):
    """``ConvolutionND`` over three axes."""

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
            3,
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
