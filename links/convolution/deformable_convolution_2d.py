"""DeformableConvolution2D: a convolution with learnt sampling offsets."""

from __future__ import annotations

from renga.core.link import Chain
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import deformable_convolution_2d_sampler
from renga.links.convolution.convolution import Convolution2D
from renga.links.convolution.filters import Filters
from renga.utils.extents import check_sizes, check_window


class DeformableConvolution2D(Chain):
    """A two-dimensional convolution whose sampling offsets a second one computes.

    ``offset_conv`` computes an offset for each kernel element, ``deform_conv``
    convolves with these offsets. ``in_channels`` None is taken from the first input.
    Without ``deform_initialW`` the filters are initially zeros.

    Shapes:
        x: (N, in_channels, H, W)
        y: (N, out_channels, H', W')
        offset_conv.W: (2 kh kw, in_channels, kh, kw)
        deform_conv.W: (out_channels, in_channels, kh, kw)

    Source: Dai et al., Deformable convolutional networks, 2017.
    """

    offset_conv: Convolution2D
    deform_conv: DeformableConvolution2DSampler

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int,
        ksize: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        pad: int | tuple[int, int] = 0,
        offset_nobias: bool = False,
        offset_initialW: Initial | None = None,
        offset_initial_bias: Initial | None = None,
        deform_nobias: bool = False,
        deform_initialW: Initial | None = None,
        deform_initial_bias: Initial | None = None,
    ) -> None:
        super().__init__()
        ((rows, columns),) = check_window(type(self).__name__, 2, ksize=ksize)
        with self.init_scope():
            self.offset_conv = Convolution2D(
                in_channels,
                2 * rows * columns,
                ksize,
                stride,
                pad,
                offset_nobias,
                offset_initialW,
                offset_initial_bias,
            )
            self.deform_conv = DeformableConvolution2DSampler(
                in_channels,
                out_channels,
                ksize,
                stride,
                pad,
                deform_nobias,
                deform_initialW,
                deform_initial_bias,
            )

    def forward(self, x: ArrayLike) -> Variable:
        """The deformable convolution of ``x``."""
        return self.deform_conv(x, self.offset_conv(x))


class DeformableConvolution2DSampler(Filters):
    """The part of ``DeformableConvolution2D`` that convolves, given the offsets.

    Shapes:
        x: (N, in_channels, H, W)
        offset: (N, 2 kh kw, H', W')
        y: (N, out_channels, H', W')
        W: (out_channels, in_channels, kh, kw), initially zeros
        b: (out_channels,), or None with ``nobias``
    """

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int,
        ksize: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        pad: int | tuple[int, int] = 0,
        nobias: bool = False,
        initialW: Initial | None = None,
        initial_bias: Initial | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, out_channels=out_channels)
        self.ksize = ksize
        self.stride = self._pair("stride", stride)
        self.pad = self._pair("pad", pad)
        self.out_channels = out_channels
        self.initialW = initialW
        W = 0 if initialW is None else initialW
        self._make_filters(in_channels, nobias, W, initial_bias)

    def _initialize_params(self, in_channels: int) -> None:
        super()._initialize_params(in_channels)
        if self.b is not None:
            self.b.initialize(self.out_channels)

    def _weight_shape(self, in_channels: int) -> tuple[int, ...]:
        return (self.out_channels, in_channels, *self._kernel_extents())

    def forward(self, x: ArrayLike, offset: ArrayLike) -> Variable:
        """The convolution of ``x`` with sampling offsets ``offset``."""
        self._ensure_filters(x)
        return deformable_convolution_2d_sampler(
            x, offset, self.W, self.b, self.stride, self.pad
        )
