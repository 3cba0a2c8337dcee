"""Transforms of where pixels are."""

from __future__ import annotations

import math
from typing import Any

import numpy

from renga.core.types import Array
from renga.transforms.images import (
    check_images,
    check_probability,
    check_range,
    check_sizes,
)
from renga.utils.argument import check_count, check_number
from renga.utils.type_check import InvalidType


def _crop(
    x: numpy.ndarray, tops: Any, lefts: Any, size: tuple[int, int]
) -> numpy.ndarray:
    """The window of image i whose first pixel is (tops[i], lefts[i])."""
    y = numpy.empty((*x.shape[:2], *size), x.dtype)
    height, width = size
    for image, top, left, part in zip(x, tops, lefts, y):
        part[...] = image[:, top : top + height, left : left + width]
    return y


def _check_fits(transform: Any, x: numpy.ndarray, size: tuple[int, int]) -> None:
    if x.shape[2] < size[0] or x.shape[3] < size[1]:
        raise InvalidType(
            f"{type(transform).__name__}: expected images of at least {size}, got "
            f"{x.shape}"
        )


class RandomCrop:
    """A window at a random place of each image.

    Args:
        size: height and width of the window, or a number that is both.
        pad: rows and columns of zeros that are put around the image before.

    Shapes:
        x: (N, C, H, W)
        y: (N, C, *size)

    Raises:
        InvalidType: an image is smaller than the window.
    """

    def __init__(self, size: int | tuple[int, int], pad: int = 0) -> None:
        check_count("RandomCrop: pad", pad, 0)
        self.size = check_sizes(self, size)
        self.pad = pad

    def __call__(self, x: Array) -> numpy.ndarray:
        """The windows."""
        x = check_images(self, x)
        border = (self.pad, self.pad)
        x = numpy.pad(x, ((0, 0), (0, 0), border, border))
        _check_fits(self, x, self.size)
        tops = numpy.random.randint(x.shape[2] - self.size[0] + 1, size=len(x))
        lefts = numpy.random.randint(x.shape[3] - self.size[1] + 1, size=len(x))
        return _crop(x, tops, lefts, self.size)


class CenterCrop:
    """The window in the middle of each image, as evaluation takes it.

    Shapes:
        x: (N, C, H, W)
        y: (N, C, *size)
    """

    def __init__(self, size: int | tuple[int, int]) -> None:
        self.size = check_sizes(self, size)

    def __call__(self, x: Array) -> numpy.ndarray:
        """The windows."""
        x = check_images(self, x)
        _check_fits(self, x, self.size)
        top, left = (x.shape[2] - self.size[0]) // 2, (x.shape[3] - self.size[1]) // 2
        return x[:, :, top : top + self.size[0], left : left + self.size[1]]


class RandomHorizontalFlip:
    """Exchanges left and right in each image with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = check_probability(self, p)

    def __call__(self, x: Array) -> numpy.ndarray:
        """The images, flipped or not."""
        x = check_images(self, x)
        flipped = numpy.random.random(len(x)) < self.p
        return numpy.where(flipped[:, None, None, None], x[..., ::-1], x)


class RandomErasing:
    """Sets a rectangle of each image to ``value`` with probability ``p``.

    Args:
        scale: least and largest part of the image's area that it covers.
        ratio: least and largest height divided by width; drawn evenly in its logarithm.

    Source: Zhong et al., Random erasing data augmentation, 2017.
    """

    def __init__(
        self,
        p: float = 0.5,
        scale: tuple[float, float] = (0.02, 0.33),
        ratio: tuple[float, float] = (0.3, 3.3),
        value: float = 0.0,
    ) -> None:
        self.p = check_probability(self, p)
        self.scale = check_range("RandomErasing: scale", scale)
        self.ratio = check_range("RandomErasing: ratio", ratio)
        if self.scale[1] > 1:
            raise ValueError(f"RandomErasing: expected parts of an area, got {scale}")
        check_number("RandomErasing: value", value)
        self.value = value

    def __call__(self, x: Array) -> numpy.ndarray:
        """The images with rectangles erased."""
        y = check_images(self, x).copy()
        for image in y:
            if numpy.random.random() < self.p:
                rows, columns = self._rectangle(*image.shape[1:])
                image[:, rows, columns] = self.value
        return y

    def _rectangle(self, height: int, width: int) -> tuple[slice, slice]:
        """Rows and columns; a rectangle over the edge is cut to the image's extent."""
        area = height * width * numpy.random.uniform(*self.scale)
        low, high = self.ratio
        ratio = math.exp(numpy.random.uniform(math.log(low), math.log(high)))
        rows = min(height, max(1, round(math.sqrt(area * ratio))))
        columns = min(width, max(1, round(math.sqrt(area / ratio))))
        top = numpy.random.randint(height - rows + 1)
        left = numpy.random.randint(width - columns + 1)
        return slice(top, top + rows), slice(left, left + columns)
