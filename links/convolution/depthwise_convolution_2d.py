"""DepthwiseConvolution2D: a convolution of each channel on its own."""

from __future__ import annotations

from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import depthwise_convolution_2d
from renga.links.convolution.filters import Filters
from renga.utils.extents import check_sizes


class DepthwiseConvolution2D(Filters):
    """A convolution of each channel with ``channel_multiplier`` filters of its own.

    ``in_channels`` None is taken from the first input. ``ksize``, ``stride`` and
    ``pad`` are numbers or pairs (vertical, horizontal).

    Shapes:
        x: (N, in_channels, H, W)
        y: (N, in_channels channel_multiplier, H', W'), a channel's one after the other
        W: (channel_multiplier, in_channels, *ksize)
        b: (in_channels channel_multiplier,), or None with ``nobias``

    Source: Chollet, Xception: deep learning with depthwise separable convolutions,
    2016.
    """

    def __init__(
        self,
        in_channels: int | None,
        channel_multiplier: int,
        ksize: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        pad: int | tuple[int, int] = 0,
        nobias: bool = False,
        initialW: Initial | None = None,
        initial_bias: Initial | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, channel_multiplier=channel_multiplier)
        self.ksize = ksize
        self.stride = self._pair("stride", stride)
        self.pad = self._pair("pad", pad)
        self.channel_multiplier = channel_multiplier
        self.nobias = nobias
        self._make_filters(in_channels, nobias, initialW, initial_bias)

    def _initialize_params(self, in_channels: int) -> None:
        super()._initialize_params(in_channels)
        if self.b is not None:
            self.b.initialize(in_channels * self.channel_multiplier)

    def _weight_shape(self, in_channels: int) -> tuple[int, ...]:
        return (self.channel_multiplier, in_channels, *self._kernel_extents())

    def forward(self, x: ArrayLike) -> Variable:
        """The convolution of ``x``."""
        self._ensure_filters(x)
        return depthwise_convolution_2d(x, self.W, self.b, self.stride, self.pad)
