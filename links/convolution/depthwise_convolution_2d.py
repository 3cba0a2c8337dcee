"""DepthwiseConvolution2D: a convolution of each channel on its own."""

from __future__ import annotations

from typing import Any

from renga.functions import depthwise_convolution_2d
from renga.functions.pair import as_pair
from renga.initializers import _get_initializer
from renga.link import Link
from renga.parameter import Parameter
from renga.variable import Variable


class DepthwiseConvolution2D(Link):
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

    W: Parameter
    b: Parameter | None

    def __init__(
        self,
        in_channels: int | None,
        channel_multiplier: int,
        ksize: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        pad: int | tuple[int, int] = 0,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
    ) -> None:
        super().__init__()
        self.ksize = ksize
        self.stride = as_pair(stride)
        self.pad = as_pair(pad)
        self.channel_multiplier = channel_multiplier
        self.nobias = nobias
        with self.init_scope():
            self.W = Parameter(_get_initializer(initialW))
            if nobias:
                self.b = None
            else:
                bias = 0 if initial_bias is None else initial_bias
                self.b = Parameter(_get_initializer(bias))
        if in_channels is not None:
            self._initialize(in_channels)

    def _initialize(self, channels: int) -> None:
        multiplier = self.channel_multiplier
        self.W.initialize((multiplier, channels, *as_pair(self.ksize)))
        if self.b is not None:
            self.b.initialize((channels * multiplier,))

    def forward(self, x: Any) -> Variable:
        """The convolution of ``x``."""
        if self.W.array is None:
            self._initialize(x.shape[1])
        return depthwise_convolution_2d(x, self.W, self.b, self.stride, self.pad)
