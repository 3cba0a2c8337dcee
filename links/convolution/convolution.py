"""Convolutions over two axes or any number of them, with a bias."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from renga import _core
from renga.core.types import ArrayLike, Extents, Initial
from renga.core.variable import Variable, as_array
from renga.functions import convolution_nd, dilated_convolution_2d
from renga.functions.window import window_2d
from renga.links.convolution.filters import Filters, GroupedFilters2D, GroupedFiltersND


class Convolution2D(GroupedFilters2D):
    """A two-dimensional convolution with a bias.

    ``in_channels`` None, or left out (``Convolution2D(out_channels, ksize)``), is
    taken from the first input. ``ksize``, ``stride``, ``pad`` and ``dilate`` are
    numbers or pairs (vertical, horizontal).

    Shapes:
        x: (N, in_channels, H, W)
        y: (N, out_channels, H', W')
        W: (out_channels, in_channels / groups, *ksize)
        b: (out_channels,), or None with ``nobias``
    """

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int | None,
        ksize: int | tuple[int, int] | None = None,
        stride: int | tuple[int, int] = 1,
        pad: int | tuple[int, int] = 0,
        nobias: bool = False,
        initialW: Initial | None = None,
        initial_bias: Initial | None = None,
        *,
        dilate: int | tuple[int, int] = 1,
        groups: int = 1,
        **kwargs: object,
    ) -> None:
        super().__init__(
            (in_channels, out_channels, ksize),
            window_2d(type(self).__name__, stride, pad, dilate, groups),
            nobias,
            (initialW, initial_bias),
            kwargs,
        )

    @property
    def printable_specs(self) -> Iterator[tuple[str, object]]:
        yield "in_channels", self.in_channels
        yield "out_channels", self.out_channels
        yield "ksize", self.ksize
        yield "stride", self.stride
        yield "pad", self.pad
        yield "nobias", self.b is None
        yield "dilate", self.dilate
        yield "groups", self.groups

    @classmethod
    def from_params(
        cls,
        W: ArrayLike,
        b: ArrayLike | None = None,
        stride: int | tuple[int, int] = 1,
        pad: int | tuple[int, int] = 0,
        nobias: bool = False,
        *,
        dilate: int | tuple[int, int] = 1,
        groups: int = 1,
    ) -> Convolution2D:
        """A convolution with the given parameter values."""
        out_channels, channels, *ksize = W.shape
        return cls(
            channels * groups,
            out_channels,
            tuple(ksize),
            stride,
            pad,
            nobias,
            as_array(W),
            as_array(b),
            dilate=dilate,
            groups=groups,
        )

    def forward(self, x: ArrayLike) -> Variable:
        """The convolution of ``x``."""
        self._ensure_filters(x)
        options = self.stride, self.pad, self.dilate, self.groups
        window = window_2d("convolution_2d", *options)
        return _core.ops.convolution_2d(x, self.W, self.b, window, False)


class DilatedConvolution2D(Filters):
    """A two-dimensional convolution whose filters sample every ``dilate``-th pixel.

    ``in_channels`` None, or left out (``DilatedConvolution2D(out_channels, ksize)``),
    is taken from the first input. ``ksize``, ``stride``, ``pad`` and ``dilate`` are
    numbers or pairs (vertical, horizontal).

    Shapes:
        x: (N, in_channels, H, W)
        y: (N, out_channels, H', W')
        W: (out_channels, in_channels, *ksize)
        b: (out_channels,), or None with ``nobias``

    Source: Yu and Koltun, Multi-scale context aggregation by dilated convolutions,
    2016.
    """

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int | None,
        ksize: int | tuple[int, int] | None = None,
        stride: int | tuple[int, int] = 1,
        pad: int | tuple[int, int] = 0,
        dilate: int | tuple[int, int] = 1,
        nobias: bool = False,
        initialW: Initial | None = None,
        initial_bias: Initial | None = None,
    ) -> None:
        super().__init__()
        if ksize is None:
            in_channels, out_channels, ksize = None, in_channels, out_channels
        self.out_channels: Any = out_channels
        self.ksize: Any = ksize
        self.stride = self._pair("stride", stride)
        self.pad = self._pair("pad", pad)
        self.dilate = self._pair("dilate", dilate)
        self._make_filters(in_channels, nobias, initialW, initial_bias, out_channels)

    def _weight_shape(self, in_channels: int) -> tuple[int, ...]:
        return (self.out_channels, in_channels, *self._kernel_extents())

    def forward(self, x: ArrayLike) -> Variable:
        """The convolution of ``x``."""
        self._ensure_filters(x)
        return dilated_convolution_2d(
            x, self.W, self.b, self.stride, self.pad, self.dilate
        )


class ConvolutionND(GroupedFiltersND):
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
        out_channels: int,
        ksize: Extents | None = None,
        stride: int | tuple[int, ...] = 1,
        pad: int | tuple[int, ...] = 0,
        nobias: bool = False,
        initialW: Initial | None = None,
        initial_bias: Initial | None = None,
        cover_all: bool = False,
        dilate: int | tuple[int, ...] = 1,
        groups: int = 1,
    ) -> None:
        super().__init__(
            ndim,
            (in_channels, out_channels, ksize),
            (stride, pad, dilate, groups),
            nobias,
            (initialW, initial_bias),
        )
        self.cover_all = cover_all

    @classmethod
    def from_params(
        cls,
        W: ArrayLike,
        b: ArrayLike | None = None,
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
        if cls._axes is None:
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

    def forward(self, x: ArrayLike) -> Variable:
        """The convolution of ``x``."""
        self._ensure_filters(x)
        options = (self.stride, self.pad, self.cover_all, self.dilate, self.groups)
        return convolution_nd(x, self.W, self.b, *options)


class Convolution1D(ConvolutionND):
    """``ConvolutionND`` over one axis."""

    _axes = 1
    __init__ = functools.partialmethod(ConvolutionND.__init__, _axes)  # type: ignore[assignment]


class Convolution3D(ConvolutionND):
    """``ConvolutionND`` over three axes."""

    _axes = 3
    __init__ = functools.partialmethod(ConvolutionND.__init__, _axes)  # type: ignore[assignment]
