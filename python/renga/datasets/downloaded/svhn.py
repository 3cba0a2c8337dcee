"""SVHN: photographs of house numbers in colour, 32×32 pixels."""

from __future__ import annotations

import os

import numpy

from renga.core.types import DTypeLike
from renga.dataset import download
from renga.datasets.downloaded.images import ImageOptions, cached_arrays, image_dataset
from renga.datasets.tuple_dataset import TupleDataset
from renga.serializers.files import parsing

_MIRROR = "http://ufldl.stanford.edu/housenumbers/"
_CHECKSUMS = {
    "train": "md5:e26dedcc434d2e4c54c9b2d4a06d8373",
    "test": "md5:eb5a983be6a315427106f1b164d9cef3",
    "extra": "md5:a93ce644f1a588dc4d68dda5feec44a7",
}


def get_svhn(
    withlabel: bool = True,
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
    label_dtype: DTypeLike = numpy.int32,
    add_extra: bool = False,
) -> tuple[TupleDataset | numpy.ndarray, ...]:
    """The 73 257 training and 26 032 test digits; ``add_extra``, 531 131 easier ones.

    Values reach from 0 to ``scale``.

    Shapes:
        image: (3, 32, 32)

    Raises:
        OSError: a file cannot be downloaded; the message says where to put it.
        ImportError: SciPy, which reads the files, is not installed.

    Source: Netzer et al., Reading digits in natural images with unsupervised feature
    learning (2011).
    """
    splits = ["train", "test", "extra"] if add_extra else ["train", "test"]
    options = ImageOptions(withlabel, 3, scale, dtype, label_dtype)
    return tuple(_load(split, options) for split in splits)


def _load(split: str, options: ImageOptions) -> TupleDataset | numpy.ndarray:
    folder = os.path.join(download.get_dataset_root(), "pfnet", "chainer", "svhn")
    file = f"{split}_32x32.mat"

    def create() -> dict[str, numpy.ndarray]:
        import scipy.io

        path = os.path.join(folder, file)
        path = download.download([_MIRROR + file], path, _CHECKSUMS[split])
        with parsing(f"svhn: {path}: expected images and labels", path):
            content = scipy.io.loadmat(path)
            # Stored as (H, W, C, N), with label 10 for the digit 0.
            images = numpy.ascontiguousarray(content["X"].transpose(3, 2, 0, 1))
            return {"x": images, "y": content["y"].ravel() % 10}

    raw = cached_arrays(os.path.join(folder, f"{split}.npz"), create)
    images = raw["x"]
    if images.shape[:3] == (32, 32, 3):  # Chainer caches what it downloaded
        images = images.transpose(3, 2, 0, 1)
    return image_dataset(images, raw["y"].ravel() % 10, 255, options)
