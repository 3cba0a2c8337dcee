"""Fashion-MNIST: 70 000 pictures of clothes of 28×28 pixels."""

from __future__ import annotations

import numpy

from renga.core.types import DTypeLike
from renga.datasets.downloaded.idx import idx_datasets
from renga.datasets.downloaded.images import ImageOptions
from renga.datasets.tuple_dataset import TupleDataset

_MIRRORS = (
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
)
_CHECKSUMS = {
    "train-images-idx3-ubyte.gz": "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "train-labels-idx1-ubyte.gz": "md5:25c81989df183df01b3e8a0aad5dffbe",
    "t10k-images-idx3-ubyte.gz": "md5:bef4ecab320f06d8554ea6380940ec79",
    "t10k-labels-idx1-ubyte.gz": "md5:bb300cfdad3c16e7a12a480ee83cd310",
}


def get_fashion_mnist_labels() -> list[str]:
    """The names of the ten classes, in the order of their labels."""
    return [
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ]


def get_fashion_mnist(
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

    Source: Xiao et al., arXiv 1708.07747.
    """
    options = ImageOptions(withlabel, ndim, scale, dtype, label_dtype, rgb_format)
    return idx_datasets("fashion-mnist", _MIRRORS, _CHECKSUMS, options)
