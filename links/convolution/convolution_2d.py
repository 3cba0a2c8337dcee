"""Convolution2D: a two-dimensional convolution."""

from __future__ import annotations

from collections.abc import Iterator

from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable, as_array
from renga.functions import convolution_2d
from renga.functions.window import window_2d
from renga.links.convolution.filters import GroupedFilters2D


class Convolution2D(GroupedFilters2D):
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

    @property
    def printable_specs(self) -> Iterator[tuple[str, object]]:
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
        W: ArrayLike,
        b: ArrayLike | None = None,
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

    def forward(self, x: ArrayLike) -> Variable:
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
