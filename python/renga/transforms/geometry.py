"""Transforms of where pixels are."""

from __future__ import annotations

import math

import numpy

from renga.core.configuration import no_backprop_mode
from renga.core.types import Array
from renga.functions import resize_images
from renga.transforms.images import (
    Images,
    OfImages,
    check_images,
    check_probability,
    check_range,
    check_sizes,
)
from renga.utils.argument import check_count, check_number
from renga.utils.type_check import InvalidType


class RandomCrop(OfImages):
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

    def of_images(self, images: Images) -> list[numpy.ndarray]:
        """The windows."""
        if self.pad > 0:
            images = [_padded(image, self.pad) for image in images]
        places = _places(self, images)
        return _windows(images, numpy.random.randint(places + 1), self.size)


class CenterCrop(OfImages):
    """The window in the middle of each image, as evaluation takes it.

    Shapes:
        x: (N, C, H, W)
        y: (N, C, *size)
    """

    def __init__(self, size: int | tuple[int, int]) -> None:
        self.size = check_sizes(self, size)

    def of_images(self, images: Images) -> list[numpy.ndarray]:
        """The windows."""
        return _windows(images, _places(self, images) // 2, self.size)


def _padded(x: numpy.ndarray, pad: int) -> numpy.ndarray:
    height, width = x.shape[1:]
    y = numpy.zeros((len(x), height + 2 * pad, width + 2 * pad), x.dtype)
    y[:, pad : pad + height, pad : pad + width] = x
    return y


def _places(transform: RandomCrop | CenterCrop, images: Images) -> numpy.ndarray:
    """How far a window can be moved along each of the axes (2, N)."""
    found = [
        [own - size for own, size in zip(x.shape[1:], transform.size)] for x in images
    ]
    for x, place in zip(images, found):
        if min(place) < 0:
            raise InvalidType(
                f"{type(transform).__name__}: expected images of at least "
                f"{transform.size}, got {x.shape}"
            )
    return numpy.transpose(found)


def _windows(
    images: Images, first: numpy.ndarray, size: tuple[int, int]
) -> list[numpy.ndarray]:
    """The window of image i whose first row and column are ``first[:, i]``."""
    height, width = size
    return [
        x[:, top : top + height, left : left + width]
        for x, top, left in zip(images, *first.tolist())
    ]


class RandomHorizontalFlip(OfImages):
    """Exchanges left and right in each image with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = check_probability(self, p)

    def of_images(self, images: Images) -> list[numpy.ndarray]:
        """The images, flipped or not."""
        flipped = numpy.random.random(len(images)) < self.p
        return [x[:, :, ::-1] if flip else x for x, flip in zip(images, flipped)]


class RandomResizedCrop(OfImages):
    """A random rectangle of each image, resized to ``size`` by interpolation.

    Args:
        size: height and width of the results, or a number that is both.
        scale: least and largest part of the image's area that the rectangle covers.
        ratio: least and largest height divided by width; drawn evenly in its logarithm.

    Shapes:
        x: (N, C, H, W)
        y: (N, C, *size) float; float32 for integers

    Source: Szegedy et al., Going deeper with convolutions, 2014.
    """

    def __init__(
        self,
        size: int | tuple[int, int],
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
    ) -> None:
        self.size = check_sizes(self, size)
        self.scale = _check_scale(self, scale)
        self.ratio = check_range("RandomResizedCrop: ratio", ratio)

    def of_images(self, images: Images) -> list[numpy.ndarray]:
        """The resized rectangles."""
        return [self._resized(image) for image in images]

    def _resized(self, image: numpy.ndarray) -> numpy.ndarray:
        height, width = image.shape[1:]
        rows, columns = _random_rectangle(height, width, self.scale, self.ratio)
        part = image[None, :, rows, columns]
        if part.dtype.kind != "f":
            part = part.astype("f")
        with no_backprop_mode():
            y = resize_images(part, self.size, align_corners=False)
        found: numpy.ndarray = y.array[0]
        return found


def _check_scale(transform: object, scale: object) -> tuple[float, float]:
    """``scale``; an error unless these are two parts of an area in order."""
    name = type(transform).__name__
    found = check_range(f"{name}: scale", scale)
    if found[1] > 1:
        raise ValueError(f"{name}: expected parts of an area, got {scale}")
    return found


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
        self.scale = _check_scale(self, scale)
        self.ratio = check_range("RandomErasing: ratio", ratio)
        check_number("RandomErasing: value", value)
        self.value = value

    def __call__(self, x: Array) -> numpy.ndarray:
        """The images with rectangles erased."""
        y = check_images(self, x).copy()
        for image in y:
            if numpy.random.random() < self.p:
                height, width = image.shape[1:]
                part = _random_rectangle(height, width, self.scale, self.ratio)
                image[(slice(None), *part)] = self.value
        return y


def _random_rectangle(
    height: int, width: int, scale: tuple[float, float], ratio: tuple[float, float]
) -> tuple[slice, slice]:
    """Rows and columns; a rectangle over the edge is cut to the image's extent."""
    area = height * width * numpy.random.uniform(*scale)
    low, high = ratio
    drawn = math.exp(numpy.random.uniform(math.log(low), math.log(high)))
    rows = min(height, max(1, round(math.sqrt(area * drawn))))
    columns = min(width, max(1, round(math.sqrt(area / drawn))))
    top = numpy.random.randint(height - rows + 1)
    left = numpy.random.randint(width - columns + 1)
    return slice(top, top + rows), slice(left, left + columns)
