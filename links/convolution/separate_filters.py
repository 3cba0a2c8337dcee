"""Convolutions with filters of each channel's, or of each pixel's, own."""

from __future__ import annotations

from collections.abc import Sequence

from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import depthwise_convolution_2d, local_convolution_2d
from renga.functions.window import as_pair
from renga.initializers import get_initializer
from renga.links.convolution.filters import Filters
from renga.utils.conv import get_conv_outsize
from renga.utils.extents import check_sizes, check_window


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


class LocalConvolution2D(Link):
    """A product of every window with filters of its own.

    ``in_channels`` None, or ``in_size`` None, is taken from the first input.
    ``in_size``, ``ksize`` and ``stride`` are numbers or pairs (vertical, horizontal).
    Keyword arguments are accepted for old scripts and ignored.

    Shapes:
        x: (N, in_channels, *in_size)
        y: (N, out_channels, H', W')
        W: (out_channels, H', W', in_channels, *ksize)
        b: (out_channels, H', W'), or None with ``nobias``
    """

    W: Parameter
    b: Parameter | None

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int,
        in_size: int | tuple[int, int] | None = None,
        ksize: int | tuple[int, int] | None = None,
        stride: int | tuple[int, int] = 1,
        nobias: bool = False,
        initialW: Initial | None = None,
        initial_bias: Initial | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__()
        check_sizes(self, in_channels=in_channels, out_channels=out_channels)
        self.ksize = ksize
        self.stride = as_pair(stride, type(self).__name__, "stride")
        self.nobias = nobias
        self.out_channels = out_channels
        with self.init_scope():
            self.W = Parameter(get_initializer(initialW))
            if nobias:
                self.b = None
            else:
                bias = 0 if initial_bias is None else initial_bias
                self.b = Parameter(get_initializer(bias))
        if in_channels is not None and in_size is not None:
            self._initialize_params(
                in_channels, as_pair(in_size, type(self).__name__, "in_size")
            )

    def _initialize_params(self, in_channels: int, in_size: Sequence[int]) -> None:
        name = type(self).__name__
        ksize, stride = check_window(name, 2, ksize=self.ksize, stride=self.stride)
        outs = tuple(map(get_conv_outsize, in_size, ksize, stride, (0, 0)))
        if min(outs) < 1:
            raise ValueError(f"{name}: expected images of {ksize}, got {in_size}")
        pixels = (self.out_channels, *outs)
        self.W.initialize((*pixels, in_channels, *ksize))
        if self.b is not None:
            self.b.initialize(pixels)

    def forward(self, x: ArrayLike) -> Variable:
        """The local convolution of ``x``."""
        if not self.W.is_initialized:
            self._initialize_params(x.shape[1], x.shape[2:])
        return local_convolution_2d(x, self.W, self.b, self.stride)
