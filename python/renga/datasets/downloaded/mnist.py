"""MNIST and the data sets in its place: 70 000 grey pictures of 28×28 pixels each."""

from __future__ import annotations

import numpy

from renga.core.types import DTypeLike
from renga.datasets.downloaded.idx import idx_datasets
from renga.datasets.downloaded.images import ImageOptions
from renga.datasets.tuple_dataset import TupleDataset


def get_mnist(
    withlabel: bool = True,
    ndim: int = 1,
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
    label_dtype: DTypeLike = numpy.int32,
    rgb_format: bool = False,
) -> tuple[TupleDataset | numpy.ndarray, TupleDataset | numpy.ndarray]:
    """The 60 000 training and the 10 000 test images, with labels 0 to 9 or alone.

    Values reach from 0 to ``scale``.

    Shapes:
        image: (784,), (28, 28) or (1, 28, 28) for ``ndim`` 1, 2 or 3; (3, 28, 28) with
            ``ndim=3, rgb_format=True``

    Raises:
        OSError: the files cannot be downloaded; the message says where to put them.

    Source: LeCun et al., Gradient-based learning applied to document recognition
    (1998).
    """
    options = ImageOptions(withlabel, ndim, scale, dtype, label_dtype, rgb_format)
    return idx_datasets("mnist", options)


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
    return idx_datasets("fashion-mnist", options)


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
    return idx_datasets("kuzushiji_mnist", options)
