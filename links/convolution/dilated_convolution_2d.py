"""DilatedConvolution2D: a two-dimensional dilated convolution."""

from __future__ import annotations

from typing import Any

from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import dilated_convolution_2d
from renga.links.convolution.filters import Filters


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
        out_channels: Any,
        ksize: Any = None,
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
        self.out_channels = out_channels
        self.ksize = ksize
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
