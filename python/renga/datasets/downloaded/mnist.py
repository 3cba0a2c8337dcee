"""MNIST: 70 000 handwritten digits of 28×28 pixels."""

from __future__ import annotations

import numpy

from renga.core.types import DTypeLike
from renga.datasets.downloaded.idx import idx_arrays, idx_datasets
from renga.datasets.downloaded.images import ImageOptions
from renga.datasets.tuple_dataset import TupleDataset

_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "http://yann.lecun.com/exdb/mnist/",  # Chainer's
)
_CHECKSUMS = {
    "train-images-idx3-ubyte.gz": "sha256:"
    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "sha256:"
    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "sha256:"
    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "sha256:"
    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}


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
    return idx_datasets("mnist", _MIRRORS, _CHECKSUMS, options)


def arrays_of(split: str) -> dict[str, numpy.ndarray]:
    """The bytes of the images, (N, 784), and of the labels, as ``x`` and ``y``.

    ``split`` is ``"train"`` or ``"test"``.
    """
    return idx_arrays("mnist", _MIRRORS, _CHECKSUMS, split)
