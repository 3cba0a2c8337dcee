"""Transposes of convolutions over two axes or any number of them."""

from __future__ import annotations

import functools
from typing import Any

from renga.core.types import ArrayLike, Extents, Initial
from renga.core.variable import Variable
from renga.functions import deconvolution_2d, deconvolution_nd
from renga.functions.array.cast import with_cast_params
from renga.functions.window import window_2d
from renga.links.convolution.filters import GroupedFilters2D, GroupedFiltersND
from renga.utils.type_check import InvalidType


class Deconvolution2D(GroupedFilters2D):
    """The transpose of a two-dimensional convolution, with a bias.

    ``in_channels`` None, or left out (``Deconvolution2D(out_channels, ksize)``), is
    taken from the first input. ``ksize``, ``stride``, ``pad``, ``dilate`` and
    ``outsize`` are numbers or pairs (vertical, horizontal); ``outsize`` chooses
    among the sizes that the convolution maps to that of the input.

    Shapes:
        x: (N, in_channels, H, W)
        y: (N, out_channels, H', W')
        W: (in_channels, out_channels / groups, *ksize)
        b: (out_channels,), or None with ``nobias``
    """

    _transposed = True

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int | None,
        ksize: int | tuple[int, int] | None = None,
        stride: int | tuple[int, int] = 1,
        pad: int | tuple[int, int] = 0,
        nobias: bool = False,
        outsize: int | tuple[int, int] | None = None,
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
        self.outsize = None if outsize is None else self._pair("outsize", outsize)

    def forward(self, x: ArrayLike) -> Variable:
        """The deconvolution of ``x``."""
        self._ensure_filters(x)
        options: dict[str, Any] = {
            "stride": self.stride,
            "pad": self.pad,
            "outsize": self.outsize,
            "dilate": self.dilate,
            "groups": self.groups,
        }
        try:
            return deconvolution_2d(x, self.W, self.b, **options)
        except InvalidType as error:
            params = self.W, self.b
            return with_cast_params(error, deconvolution_2d, x, *params, **options)


class DeconvolutionND(GroupedFiltersND):
    """The transpose of a convolution over ``ndim`` axes, with a bias.

    ``in_channels`` None, or left out (``DeconvolutionND(ndim, out_channels, ksize)``),
    is taken from the first input. ``ksize``, ``stride``, ``pad`` and ``dilate`` are
    numbers or one number per axis; ``outsize`` chooses among the sizes that the
    convolution maps to that of the input.

    Shapes:
        x: (N, in_channels, d1, …, dn)
        y: (N, out_channels, d1', …, dn')
        W: (in_channels, out_channels / groups, *ksize)
        b: (out_channels,), or None with ``nobias``
    """

    _transposed = True

    def __init__(
        self,
        ndim: int,
        in_channels: int | None,
        out_channels: int,
        ksize: Extents | None = None,
        stride: int | tuple[int, ...] = 1,
        pad: int | tuple[int, ...] = 0,
        nobias: bool = False,
        outsize: tuple[int, ...] | None = None,
        initialW: Initial | None = None,
        initial_bias: Initial | None = None,
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
        self.outsize = outsize

    def forward(self, x: ArrayLike) -> Variable:
        """The deconvolution of ``x``."""
        self._ensure_filters(x)
        options = (self.stride, self.pad, self.outsize, self.dilate, self.groups)
        return deconvolution_nd(x, self.W, self.b, *options)


class Deconvolution1D(DeconvolutionND):
    """``DeconvolutionND`` over one axis."""

    _axes = 1
    __init__ = functools.partialmethod(DeconvolutionND.__init__, _axes)  # type: ignore[assignment]


class Deconvolution3D(DeconvolutionND):
    """``DeconvolutionND`` over three axes."""

    _axes = 3
    __init__ = functools.partialmethod(DeconvolutionND.__init__, _axes)  # type: ignore[assignment]
