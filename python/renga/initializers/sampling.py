"""Initializers of filters that change the resolution of images."""

from __future__ import annotations

import functools
from typing import Any

import numpy

from renga.core import initializer
from renga.core.types import Array, DTypeLike


class _Triangles(initializer.Initializer):
    def __init__(
        self, interpolation: str = "linear", dtype: DTypeLike | None = None
    ) -> None:
        if interpolation != "linear":
            raise ValueError(f"expected interpolation 'linear', got {interpolation!r}")
        super().__init__(dtype)

    def __call__(self, array: Array) -> None:
        self._check_dtype(array)
        outputs, inputs, *ksize = array.shape
        if not ksize:
            raise TypeError(f"expected a filter of some axes, got {array.shape}")
        if len(set(ksize)) > 1:
            raise ValueError(f"expected a filter of equal sides, got {tuple(ksize)}")
        assert inputs in (1, outputs), (
            f"expected as many inputs as outputs, or one, got {array.shape}"
        )
        triangle = self._triangle(ksize[0])
        values = numpy.zeros(array.shape)
        channels = numpy.arange(outputs)
        own = (channels, channels if inputs == outputs else 0)
        values[own] = functools.reduce(numpy.multiply.outer, [triangle] * len(ksize))
        self._fill(array, values)

    def _triangle(self, size: int) -> Any:
        """Weights that fall off from the middle, 1 if that is an element."""
        factor = (size + 1) // 2
        return 1 - abs(numpy.arange(size) - (size - 1) / 2) / factor


class UpsamplingDeconvFilter(_Triangles):
    """Fills the filter of a deconvolution that enlarges images.

    With a stride of half the size of the kernel each channel is interpolated linearly.

    Shapes:
        array: (channels, channels or 1, *sides), all sides of one length

    Raises:
        ValueError: another interpolation than ``"linear"``, or sides that differ.

    Source: Long et al., Fully convolutional networks, 2015.
    """


class DownsamplingConvFilter(_Triangles):
    """Fills the filter of a convolution that shrinks images.

    With a stride of half the size of the kernel each channel is averaged with weights
    that fall off linearly. Shapes and errors are as in ``UpsamplingDeconvFilter``.
    """

    def _triangle(self, size: int) -> Any:
        return super()._triangle(size) / ((size + 1) // 2)
