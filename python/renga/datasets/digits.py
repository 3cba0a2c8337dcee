"""Real handwritten digits that come with scikit-learn: no network is needed."""

from __future__ import annotations

from typing import Any

import numpy

from renga.datasets.downloaded.images import image_dataset
from renga.datasets.tuple_dataset import TupleDataset

_LARGEST = 16.0  # each pixel counts the dots in a 4×4 block of a scanned bitmap
_TEST_SIZE = 357  # leaves 1 440, which shares out evenly over 2, 3, 4, 5, 6 ranks


def get_digits(
    withlabel: bool = True,
    ndim: int = 1,
    scale: float = 1.0,
    dtype: Any = None,
    label_dtype: Any = numpy.int32,
    rgb_format: bool = False,
    upscale: int | None = None,
) -> tuple[TupleDataset | numpy.ndarray, TupleDataset | numpy.ndarray]:
    """1 440 training and 357 test images, always the same, with labels 0 to 9 or alone.

    ``upscale`` is the side in pixels, reached by bilinear interpolation; it is 8 if
    None.

    Shapes: with side s, an image is (s·s,), (s, s) or (1, s, s) for ``ndim`` 1, 2 or
    3, and (3, s, s) with ``ndim=3, rgb_format=True``. Values reach from 0 to
    ``scale``.

    Raises: ImportError where scikit-learn is not installed.

    Source: Alpaydin and Kaynak, Optical recognition of handwritten digits (UCI, 1998).
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ImportError(
            "get_digits: the images are scikit-learn's; "
            "install it with `pip install scikit-learn`"
        ) from None
    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 1, 8, 8)
    if upscale is not None:
        rows = _interpolation(8, upscale)
        images = rows @ images @ rows.T
    # The file is ordered by writer, so both parts are drawn by chance from all of it.
    order = numpy.random.RandomState(0).permutation(len(images))
    train, test = (
        image_dataset(
            images[part],
            labels[part],
            _LARGEST,
            withlabel,
            ndim,
            scale,
            dtype,
            label_dtype,
            rgb_format,
        )
        for part in (order[_TEST_SIZE:], order[:_TEST_SIZE])
    )
    return train, test


def _interpolation(size: int, new_size: int) -> numpy.ndarray:
    """The matrix (new_size, size) that interpolates linearly between pixel centres."""
    centres = (numpy.arange(new_size) + 0.5) * size / new_size - 0.5
    centres = centres.clip(0, size - 1)
    distances = abs(centres[:, None] - numpy.arange(size))
    return (1 - distances).clip(0)
