"""Transposes of convolutions over any number of axes."""

from __future__ import annotations

import functools

from renga.core.types import ArrayLike, Extents, Initial
from renga.core.variable import Variable
from renga.functions import deconvolution_nd
from renga.links.convolution.filters import GroupedFiltersND


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
