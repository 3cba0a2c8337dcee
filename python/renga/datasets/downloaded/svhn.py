"""SVHN: house numbers seen from the street, in colour, 32×32 pixels."""

from __future__ import annotations

import os
from typing import Any

import numpy

from renga.dataset import download
from renga.datasets.downloaded.images import cached_arrays, image_dataset
from renga.datasets.tuple_dataset import TupleDataset
from renga.serializers.errors import parsing

_MIRROR = "http://ufldl.stanford.edu/housenumbers/"
_CHECKSUMS = {
    "train": "md5:e26dedcc434d2e4c54c9b2d4a06d8373",
    "test": "md5:eb5a983be6a315427106f1b164d9cef3",
    "extra": "md5:a93ce644f1a588dc4d68dda5feec44a7",
}


def get_svhn(
    withlabel: bool = True,
    scale: float = 1.0,
    dtype: Any = None,
    label_dtype: Any = numpy.int32,
    add_extra: bool = False,
) -> tuple[TupleDataset | numpy.ndarray, ...]:
    """The 73 257 training and 26 032 test digits; ``add_extra``, 531 131 easier ones.

    Shapes: an image is (3, 32, 32). Values reach from 0 to ``scale``.

    Raises: OSError naming the place to put a file where it cannot be fetched;
    ImportError where there is no SciPy to read it.

    Source: Netzer et al., Reading digits in natural images with unsupervised feature
    learning (2011).
    """
    parts = ["train", "test", "extra"] if add_extra else ["train", "test"]
    return tuple(_part(part, withlabel, scale, dtype, label_dtype) for part in parts)


def _part(
    part: str, withlabel: bool, scale: float, dtype: Any, label_dtype: Any
) -> TupleDataset | numpy.ndarray:
    folder = os.path.join(download.get_dataset_root(), "pfnet", "chainer", "svhn")
    file = f"{part}_32x32.mat"

    def create() -> dict[str, numpy.ndarray]:
        import scipy.io

        path = os.path.join(folder, file)
        download.download([_MIRROR + file], path, _CHECKSUMS[part])
        with parsing(f"svhn: {path}: expected images and labels", path):
            content = scipy.io.loadmat(path)
            # (height, width, channels, N), and ten for the digit nought
            images = numpy.ascontiguousarray(content["X"].transpose(3, 2, 0, 1))
            return {"x": images, "y": content["y"].ravel() % 10}

    raw = cached_arrays(os.path.join(folder, f"{part}.npz"), create)
    return image_dataset(
        raw["x"],
        raw["y"],
        255,
        withlabel=withlabel,
        scale=scale,
        dtype=dtype,
        label_dtype=label_dtype,
    )
