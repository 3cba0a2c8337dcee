"""Convolution2D: a two-dimensional convolution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from renga.functions import convolution_2d
from renga.functions.connection.convolution_2d import DETERMINISTIC
from renga.functions.pair import as_pair
from renga.links.convolution.filters import Filters, require_groups
from renga.utils.argument import assert_kwargs_empty, check_unexpected_kwargs
from renga.variable import Variable, as_array


class Convolution2D(Filters):
    """A two-dimensional convolution with a bias.

    ``in_channels`` None, or left out (``Convolution2D(out_channels, ksize)``), is
    taken from the first input. ``ksize``, ``stride``, ``pad`` and ``dilate`` are
    numbers or pairs (vertical, horizontal).

    Shapes:
        x: (N, in_channels, H, W)
        y: (N, out_channels, H', W')
        W: (out_channels, in_channels / groups, *ksize)
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
        self.groups = int(groups)
        self._make_filters(in_channels, nobias, initialW, initial_bias, out_channels)

    def _weight_shape(self, in_channels: int) -> tuple[int, ...]:
        require_groups(in_channels, self.out_channels, self.groups)
        return (self.out_channels, in_channels // self.groups, *as_pair(self.ksize))

    @property
    def printable_specs(self) -> Iterator[tuple[str, Any]]:
        yield "in_channels", self.in_channels
        yield "out_channels", self.out_channels
        yield "ksize", self.ksize
        yield "stride", self.stride
        yield "pad", self.pad
        yield "nobias", self.b is None
        yield "dilate", self.dilate
        yield "groups", self.groups

    @classmethod
    def from_params(
        cls,
        W: Any,
        b: Any = None,
        stride: int | tuple[int, int] = 1,
        pad: int | tuple[int, int] = 0,
        nobias: bool = False,
        *,
        dilate: int | tuple[int, int] = 1,
        groups: int = 1,
    ) -> Convolution2D:
        """A convolution with the given parameter values."""
        out_channels, channels, *ksize = W.shape
        return cls(
            channels * groups,
            out_channels,
            tuple(ksize),
            stride,
            pad,
            nobias,
            as_array(W),
            as_array(b),
            dilate=dilate,
            groups=groups,
        )

    def forward(self, x: Any) -> Variable:
        """The convolution of ``x``."""
        self._ensure_filters(x)
        return convolution_2d(
            x,
            self.W,
            self.b,
            self.stride,
            self.pad,
            dilate=self.dilate,
            groups=self.groups,
        )
