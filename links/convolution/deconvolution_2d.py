"""Deconvolution2D: the transpose of a two-dimensional convolution."""

from __future__ import annotations

from typing import Any

from renga.functions import deconvolution_2d
from renga.functions.connection.convolution_2d import DETERMINISTIC
from renga.functions.pair import as_pair
from renga.links.convolution.filters import Filters, require_groups
from renga.utils.argument import assert_kwargs_empty, check_unexpected_kwargs
from renga.variable import Variable


class Deconvolution2D(Filters):
    """The transpose of a two-dimensional convolution, with a bias.

    ``in_channels`` None, or left out (``Deconvolution2D(out_channels, ksize)``), is
    taken from the first input. ``ksize``, ``stride``, ``pad``, ``dilate`` and
    ``outsize`` are numbers or pairs (vertical, horizontal); ``outsize`` chooses
    among the sizes that the convolution would take to that of the input.

    Shapes:
        x: (N, in_channels, H, W)
        y: (N, out_channels, H', W')
        W: (in_channels, out_channels / groups, *ksize)
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
        outsize: int | tuple[int, int] | None = None,
        initialW: Any = None,
        initial_bias: Any = None,
        *,
        dilate: int | tuple[int, int] = 1,
        groups: int = 1,
        **kwargs: Any,
    ) -> None:
        check_unexpected_kwargs(kwargs, deterministic=DETERMINISTIC)
        assert_kwargs_empty(kwargs)
        super().__init__()
        if ksize is None:
            in_channels, out_channels, ksize = None, in_channels, out_channels
        self.in_channels = in_channels
        self.out_channels: Any = out_channels
        self.ksize = ksize
        self.stride = as_pair(stride)
        self.pad = as_pair(pad)
        self.dilate = as_pair(dilate)
        self.outsize = None if outsize is None else as_pair(outsize)
        self.groups = int(groups)
        self._make_filters(in_channels, nobias, initialW, initial_bias, out_channels)

    def _weight_shape(self, in_channels: int) -> tuple[int, ...]:
        require_groups(in_channels, self.out_channels, self.groups)
        return (in_channels, self.out_channels // self.groups, *as_pair(self.ksize))

    def forward(self, x: Any) -> Variable:
        """The deconvolution of ``x``."""
        self._ensure_filters(x)
        return deconvolution_2d(
            x,
            self.W,
            self.b,
            self.stride,
            self.pad,
            self.outsize,
            dilate=self.dilate,
            groups=self.groups,
        )
