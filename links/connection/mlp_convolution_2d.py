"""MLPConvolution2D: a small network slid over an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable

from renga.core.link import ChainList
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions import relu
from renga.links.convolution.convolution import Convolution2D
from renga.links.convolution.filters import with_in_channels
from renga.utils.argument import check_unexpected_kwargs, parse_kwargs
from renga.utils.extents import check_sizes

_WSCALE = (
    "wscale is not supported anymore. Use conv_init and bias_init argument to change "
    "the scale of initial parameters."
)


class MLPConvolution2D(ChainList):
    """A convolution followed by 1 × 1 convolutions, an activation between them.

    ``in_channels`` None, or left out (``MLPConvolution2D(out_channels, ksize)``), is
    taken from the first input. Keyword arguments ``conv_init`` and ``bias_init`` are
    initial values of every weight and bias.

    Shapes:
        x: (N, in_channels, H, W)
        y: (N, out_channels[-1], H', W')

    Source: Lin et al., Network in network, 2013.
    """

    def __init__(
        self,
        in_channels: int | Sequence[int] | None,
        out_channels: Sequence[int] | int | tuple[int, int],
        ksize: int | tuple[int, int] | None = None,
        stride: int | tuple[int, int] = 1,
        pad: int | tuple[int, int] = 0,
        activation: Callable[[Variable], Variable] = relu,
        *args: object,
        **kwargs: object,
    ) -> None:
        check_unexpected_kwargs(kwargs, wscale=_WSCALE)
        if args:
            raise TypeError(_WSCALE)
        W, b = parse_kwargs(kwargs, ("conv_init", None), ("bias_init", None))
        inputs, widths, size = with_in_channels(in_channels, out_channels, ksize)
        assert len(widths) > 0, "MLPConvolution2D: expected channels of a layer"
        check_sizes(self, in_channels=inputs, out_channels=widths)
        first, *others = widths
        super().__init__(Convolution2D(inputs, first, size, stride, pad, False, W, b))
        for before, channels in zip(widths, others):
            self.append(Convolution2D(before, channels, 1, initialW=W, initial_bias=b))
        self.activation = activation

    def forward(self, x: ArrayLike) -> Variable:
        """The output for ``x``: no activation after the last layer."""
        *hidden, last = self
        for layer in hidden:
            x = self.activation(layer(x))
        return last(x)
