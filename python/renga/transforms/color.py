"""Transforms of the values of pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from renga.core.types import Array
from renga.transforms.images import Images, check_images
from renga.utils.argument import check_number
from renga.utils.type_check import InvalidType

# The luma of red, green and blue (ITU-R BT.601).
_LUMA = (0.299, 0.587, 0.114)


class Normalize:
    """``(x - mean) / std`` with one mean and one deviation for each channel.

    Raises:
        ValueError: a deviation is not positive.
        InvalidType: the images have other channels.
    """

    def __init__(self, mean: float | Sequence[float], std: float | Sequence[float]):
        self.mean = _of_channels("mean", mean)
        self.std = _of_channels("std", std)
        if not (self.std > 0).all():
            raise ValueError(f"Normalize: expected positive deviations, got {std}")

    def __call__(self, x: Array) -> numpy.ndarray:
        """The images as float32."""
        x = check_images(self, x)
        return self.of_images(x, x.shape[1:])

    def of_images(self, images: Images, shape: tuple[int, ...]) -> numpy.ndarray:
        """The batch of images of this shape (C, H, W)."""
        for each in (self.mean, self.std):
            if each.shape not in ((1,), shape[:1]):
                raise InvalidType(
                    f"Normalize: expected {len(each)} channels, got images of {shape}"
                )
        mean, std = self.mean[:, None, None], self.std[:, None, None]
        y = numpy.empty((len(images), *shape), "f")
        for image, part in zip(images, y):
            if numpy.result_type(image, mean) == y.dtype:
                numpy.subtract(image, mean, out=part)
                numpy.divide(part, std, out=part)
            else:
                part[...] = (image - mean) / std
        return y


def _of_channels(name: str, values: Any) -> numpy.ndarray:
    """A vector of finite numbers, one for each channel or one for all."""
    for each in values if isinstance(values, (tuple, list)) else [values]:
        if not isinstance(each, numpy.ndarray):
            check_number(f"Normalize: {name}", each)
    vector = numpy.atleast_1d(numpy.asarray(values, "f"))
    if vector.ndim != 1 or not numpy.isfinite(vector).all():
        raise ValueError(
            f"Normalize: {name}: expected a finite number for each channel, got "
            f"{values}"
        )
    return vector


class ColorJitter:
    """Changes brightness, contrast and saturation of each image, in this order.

    The three factors are drawn evenly from ``[1 - v, 1 + v]`` (not below 0), where v is
    the argument. Brightness multiplies the image, contrast moves it away
    from the mean of its grey values, saturation away from its grey values.

    Shapes:
        x: (N, 3, H, W), red, green, blue, float
    """

    def __init__(
        self, brightness: float = 0.0, contrast: float = 0.0, saturation: float = 0.0
    ) -> None:
        self.strengths = (brightness, contrast, saturation)
        for name, each in zip(("brightness", "contrast", "saturation"), self.strengths):
            check_number(f"ColorJitter: {name}", each, 0)

    def __call__(self, x: Array) -> numpy.ndarray:
        """The images with other colours; values are not clipped."""
        x = check_images(self, x)
        if x.shape[1] != 3 or x.dtype.kind != "f":
            raise InvalidType(
                f"ColorJitter: expected floats of (N, 3, H, W), got {x.dtype} {x.shape}"
            )
        brightness, contrast, saturation = (
            numpy.random.uniform(max(0.0, 1 - v), 1 + v, len(x)).astype(x.dtype)
            for v in self.strengths
        )
        # All three are linear maps of the three colours of a pixel, and a constant.
        luma = numpy.asarray(_LUMA, x.dtype)
        gain = (brightness * contrast)[:, None, None]
        saturation = saturation[:, None, None]
        own = saturation * numpy.eye(3, dtype=x.dtype)
        colours = gain * (own + (1 - saturation) * luma)
        grey = brightness * (x.mean((2, 3)) @ luma)
        rows = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))
        pixels = numpy.matmul(colours, rows)
        pixels += ((1 - contrast) * grey)[:, None, None]
        return pixels.reshape(x.shape)
