"""Kuzushiji-MNIST: 70 000 cursive Japanese characters of 28×28 pixels."""

from __future__ import annotations

import numpy

from renga.core.types import DTypeLike
from renga.datasets.downloaded.idx import idx_datasets
from renga.datasets.downloaded.images import ImageOptions
from renga.datasets.tuple_dataset import TupleDataset

_MIRRORS = ("http://codh.rois.ac.jp/kmnist/dataset/kmnist/",)
_CHECKSUMS = {
    "train-images-idx3-ubyte.gz": "md5:bdb82020997e1d708af4cf47b453dcf7",
    "train-labels-idx1-ubyte.gz": "md5:e144d726b3acfaa3e44228e80efcd344",
    "t10k-images-idx3-ubyte.gz": "md5:5c965bf0a639b31b8f53240b1b52f4d7",
    "t10k-labels-idx1-ubyte.gz": "md5:7320c461ea6c1c855c0b718fb2a4b134",
}


def get_kuzushiji_mnist_labels() -> list[tuple[str, str]]:
    """The ten characters in Latin letters and as they are, in the order of labels."""
    return [
        ("o", "お"),
        ("ki", "き"),
        ("su", "す"),
        ("tsu", "つ"),
        ("na", "な"),
        ("ha", "は"),
        ("ma", "ま"),
        ("ya", "や"),
        ("re", "れ"),
        ("wo", "を"),
    ]


def get_kuzushiji_mnist(
    withlabel: bool = True,
    ndim: int = 1,
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
    label_dtype: DTypeLike = numpy.int32,
    rgb_format: bool = False,
) -> tuple[TupleDataset | numpy.ndarray, TupleDataset | numpy.ndarray]:
    """The 60 000 training and the 10 000 test images, in the shapes of ``get_mnist``.

    Raises:
        OSError: the files cannot be downloaded; the message says where to put them.

    Source: Clanuwat et al., arXiv 1812.01718.
    """
    options = ImageOptions(withlabel, ndim, scale, dtype, label_dtype, rgb_format)
    return idx_datasets("kuzushiji_mnist", _MIRRORS, _CHECKSUMS, options)
