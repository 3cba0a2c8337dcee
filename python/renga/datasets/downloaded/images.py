"""Raw images and labels: kept on disk, and made into what a user asked for."""

from __future__ import annotations

from typing import Any, Callable

import numpy

from renga.dataset import download
from renga.datasets.tuple_dataset import TupleDataset
from renga.dtypes import get_dtype
from renga.serializers.npz import open_archive


def image_dataset(
    images: numpy.ndarray,
    labels: numpy.ndarray,
    largest: float,
    withlabel: bool = True,
    ndim: int = 3,
    scale: float = 1.0,
    dtype: Any = None,
    label_dtype: Any = numpy.int32,
    rgb_format: bool = False,
) -> TupleDataset | numpy.ndarray:
    """Images whose values reach from 0 to ``scale``, with their labels or alone.

    ``largest`` is the greatest raw value. Gray images with three axes become coloured
    if ``rgb_format``.

    Shapes: images (N, C, H, W) become (N, C·H·W), (N, H, W) where C is 1, or
    (N, C, H, W), for ``ndim`` 1, 2 and 3.

    Raises: ValueError for another ``ndim``.
    """
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
    """The arrays in the npz archive at ``path``, which is made of ``create()`` once.

    Raises: FileFormatError where it is damaged.
    """

    def save(new: str) -> dict[str, numpy.ndarray]:
        arrays = create()
        numpy.savez_compressed(new, **arrays)  # type: ignore[arg-type]
        return arrays

    def load(path: str) -> dict[str, numpy.ndarray]:
        with open_archive(path) as archive:
            return dict(archive)

    return download.cache_or_load_file(path, save, load)
