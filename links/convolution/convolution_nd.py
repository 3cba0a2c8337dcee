"""Convolutions over any number of axes."""

from __future__ import annotations

import functools
from typing import Any

from renga.core.types import ArrayLike, Extents, Initial
from renga.core.variable import Variable, as_array
from renga.functions import convolution_nd
from renga.links.convolution.filters import GroupedFiltersND


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
