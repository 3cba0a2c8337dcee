"""Raw images and labels: cached on disk and converted to the requested format."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy

from renga.core.dtypes import get_dtype
from renga.dataset import download
from renga.datasets.tuple_dataset import TupleDataset
from renga.serializers.npz import open_archive


class ImageOptions(NamedTuple):
    """The format of a data set of images.

    ``withlabel``: pairs of an image and a label, not images alone. ``ndim``: axes of
    an image. ``scale``: the greatest value. ``rgb_format``: grey images with three axes
    get three equal channels.
    """

    withlabel: bool = True
    ndim: int = 3
    scale: float = 1.0
    dtype: Any = None
    label_dtype: Any = numpy.int32
    rgb_format: bool = False


def image_dataset(
    images: numpy.ndarray, labels: numpy.ndarray, largest: float, options: ImageOptions
) -> TupleDataset | numpy.ndarray:
    """Images with values from 0 to ``options.scale``, with or without their labels.

    ``largest`` is the greatest raw value.

    Shapes:
        images: (N, C, H, W)
        labels: (N,)
        return: (N, C H W), (N, H, W) if C is 1, or (N, C, H, W) for ``ndim`` 1, 2, 3

    Raises:
        ValueError: another ``ndim``.
    """
    withlabel, ndim, scale, dtype, label_dtype, rgb_format = options
    n, channels, height, width = images.shape
    shapes = {1: (n, channels * height * width), 3: images.shape}
    if channels == 1:
        shapes[2] = (n, height, width)
    if ndim not in shapes:
        expected = ", ".join(map(str, sorted(shapes)))
        raise ValueError(f"image_dataset: expected ndim in {expected}, got {ndim}")
    x = images.reshape(shapes[ndim]).astype(get_dtype(dtype))
    x *= scale / largest
    if rgb_format and ndim == 3:
        x = numpy.broadcast_to(x, (n, 3, height, width))
    return TupleDataset(x, labels.astype(label_dtype)) if withlabel else x


def cached_arrays(
    path: str, create: Callable[[], dict[str, numpy.ndarray]]
) -> dict[str, numpy.ndarray]:
    """The arrays of the npz archive at ``path``, written from ``create()`` once.

    Raises:
        FileFormatError: the archive is damaged.
    """

    def save(new: str) -> dict[str, numpy.ndarray]:
        arrays = create()
        numpy.savez_compressed(new, **arrays)  # type: ignore[arg-type]
        return arrays

    def load(path: str) -> dict[str, numpy.ndarray]:
        with open_archive(path) as archive:
            return dict(archive)

    return download.cache_or_load_file(path, save, load)
