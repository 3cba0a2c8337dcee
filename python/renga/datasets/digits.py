"""Handwritten digits from scikit-learn, without a download."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy

from renga.core.types import DTypeLike
from renga.datasets.downloaded.images import ImageOptions, image_dataset
from renga.datasets.tuple_dataset import TupleDataset

_LARGEST = 16.0  # each pixel counts the dots in a 4×4 block of a scanned bitmap
_TEST_SIZE = 357  # leaves 1 440, which 2, 3, 4, 5 and 6 ranks divide evenly


def get_digits(
    withlabel: bool = True,
    ndim: int = 1,
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
    label_dtype: DTypeLike = numpy.int32,
    rgb_format: bool = False,
    upscale: int | None = None,
) -> tuple[TupleDataset | numpy.ndarray, TupleDataset | numpy.ndarray]:
    """1 440 training and 357 test images, with labels 0 to 9 or alone.

    The split is always the same. Values reach from 0 to ``scale``. ``upscale`` is the
    side s in pixels, reached by bilinear interpolation; 8 if None.

    Shapes:
        image: (s s,), (s, s) or (1, s, s) for ``ndim`` 1, 2 or 3; (3, s, s) with
            ``ndim=3, rgb_format=True``

    Raises:
        ImportError: scikit-learn is not installed.

    Source: Alpaydin and Kaynak, Optical recognition of handwritten digits (UCI, 1998).
    """
    images, labels = _read()
    if upscale is not None:
        rows = _interpolation(8, upscale)
        images = rows @ images @ rows.T
    # The file is ordered by writer, so both splits are drawn at random from all of it.
    order = numpy.random.RandomState(0).permutation(len(images))
    options = ImageOptions(withlabel, ndim, scale, dtype, label_dtype, rgb_format)
    train, test = (
        image_dataset(images[indices], labels[indices], _LARGEST, options)
        for indices in (order[_TEST_SIZE:], order[:_TEST_SIZE])
    )
    return train, test


def _read() -> tuple[numpy.ndarray, numpy.ndarray]:
    """Images (1797, 1, 8, 8) and labels."""
    package = importlib.util.find_spec("sklearn")
    if package is None or package.origin is None:
        raise ImportError(
            "get_digits: expected scikit-learn, which holds the images; install it by "
            "`pip install scikit-learn`"
        )
    path = Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
    if path.exists():
        # Importing scikit-learn takes ten times as long as reading its file.
        data = numpy.loadtxt(path, delimiter=",")
        pixels, labels = data[:, :-1], data[:, -1].astype(int)
    else:
        from sklearn.datasets import load_digits

        pixels, labels = load_digits(return_X_y=True)
    return pixels.reshape(-1, 1, 8, 8), labels


def _interpolation(size: int, new_size: int) -> numpy.ndarray:
    """The matrix (new_size, size) that interpolates linearly between pixel centres."""
    centres = (numpy.arange(new_size) + 0.5) * size / new_size - 0.5
    centres = centres.clip(0, size - 1)
    distances = abs(centres[:, None] - numpy.arange(size))
    return (1 - distances).clip(0)
