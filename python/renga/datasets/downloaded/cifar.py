"""CIFAR-10 and CIFAR-100: 60 000 colour photographs of 32×32 pixels."""

from __future__ import annotations

import os
import pickle
import tarfile
from collections.abc import Sequence
from typing import IO, Any

import numpy

from renga.core.types import DTypeLike
from renga.dataset import download
from renga.datasets.downloaded.images import ImageOptions, cached_arrays, image_dataset
from renga.datasets.tuple_dataset import TupleDataset
from renga.serializers.files import parsing

_MIRROR = "https://www.cs.toronto.edu/~kriz/"
_PIXELS = 3 * 32 * 32
_LARGEST_MEMBER = 50_000 * (100 + _PIXELS)  # a pickle has names of files, too


def get_cifar10(
    withlabel: bool = True,
    ndim: int = 3,
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
) -> tuple[TupleDataset | numpy.ndarray, TupleDataset | numpy.ndarray]:
    """The 50 000 training and 10 000 test images of ten classes, with labels or alone.

    Values reach from 0 to ``scale``. An archive that Chainer's ``cached_download`` has
    kept is read, too: of its pickles, arrays alone.

    Shapes:
        image: (3072,) or (3, 32, 32) for ``ndim`` 1 or 3

    Raises:
        OSError: the file cannot be downloaded; the message says where to put it.

    Source: Krizhevsky, Learning multiple layers of features from tiny images (2009).
    """
    folder = "cifar-10-batches-bin"
    train = [f"{folder}/data_batch_{i}.bin" for i in range(1, 6)]
    checksum = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
    raw = _load("cifar-10", checksum, train, f"{folder}/test_batch.bin")
    return _datasets(raw, ImageOptions(withlabel, ndim, scale, dtype))


def get_cifar100(
    withlabel: bool = True,
    ndim: int = 3,
    scale: float = 1.0,
    dtype: DTypeLike | None = None,
) -> tuple[TupleDataset | numpy.ndarray, TupleDataset | numpy.ndarray]:
    """The 50 000 training and 10 000 test images of a hundred classes.

    Formats and errors as of ``get_cifar10``; the labels are the fine ones.
    """
    folder = "cifar-100-binary"
    checksum = "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"
    raw = _load("cifar-100", checksum, [f"{folder}/train.bin"], f"{folder}/test.bin")
    return _datasets(raw, ImageOptions(withlabel, ndim, scale, dtype))


def _load(
    name: str, checksum: str, train: Sequence[str], test: str
) -> dict[str, numpy.ndarray]:
    folder = os.path.join(download.get_dataset_root(), "pfnet", "chainer", "cifar")
    file = f"{name}-binary.tar.gz"  # the archive without pickles

    def create() -> dict[str, numpy.ndarray]:
        chainers = download.find_cached(f"{_MIRROR}{name}-python.tar.gz")
        archive_path = chainers or download.download(
            [_MIRROR + file], os.path.join(folder, file), f"sha256:{checksum}"
        )
        kind, read = (
            ("pickles", _read_pickles) if chainers else ("binary", _read_records)
        )
        expected = f"cifar: {archive_path}: expected an archive of {kind} files"
        with parsing(expected, archive_path), tarfile.open(archive_path) as archive:
            train_x, train_y = read(archive, train)
            test_x, test_y = read(archive, [test])
        return dict(train_x=train_x, train_y=train_y, test_x=test_x, test_y=test_y)

    return cached_arrays(os.path.join(folder, f"{name}.npz"), create)


def _read_records(
    archive: tarfile.TarFile, members: Sequence[str]
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The images and the last label byte of each record: label bytes, then pixels."""
    label_bytes = 2 if members[0].startswith("cifar-100") else 1
    records = []
    for member in members:
        data = numpy.frombuffer(_open(archive, member).read(), numpy.uint8)
        records.append(data.reshape(-1, label_bytes + _PIXELS))
    joined = numpy.concatenate(records)
    return joined[:, label_bytes:], joined[:, label_bytes - 1]


def _read_pickles(
    archive: tarfile.TarFile, members: Sequence[str]
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The images and labels of the pickles that have the names of binary members."""
    is_10 = members[0].startswith("cifar-10-")
    images, labels = [], []
    for member in members:
        name, _ = os.path.splitext(os.path.basename(member))
        folder = "cifar-10-batches-py" if is_10 else "cifar-100-python"
        found = _Arrays(_open(archive, f"{folder}/{name}"), encoding="bytes").load()
        images.append(numpy.asarray(found[b"data"], numpy.uint8).reshape(-1, _PIXELS))
        labels.append(found[b"labels" if is_10 else b"fine_labels"])
    return numpy.concatenate(images), numpy.concatenate(labels).astype(numpy.uint8)


def _open(archive: tarfile.TarFile, member: str) -> IO[bytes]:
    info = archive.getmember(member)
    file = archive.extractfile(info) if info.size <= _LARGEST_MEMBER else None
    if file is None:
        raise ValueError(f"no file of images called {member}")
    return file


class _Arrays(pickle.Unpickler):
    """Reads arrays, numbers and texts: a pickle that calls anything else is refused."""

    _CALLED = {
        "_reconstruct": numpy.zeros(0).__reduce__()[0],
        "ndarray": numpy.ndarray,
        "dtype": numpy.dtype,
    }

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] != "numpy" or name not in self._CALLED:
            raise ValueError(f"a pickle of {module}.{name}")
        return self._CALLED[name]


def _datasets(
    raw: dict[str, numpy.ndarray], options: ImageOptions
) -> tuple[TupleDataset | numpy.ndarray, TupleDataset | numpy.ndarray]:
    train, test = (
        image_dataset(
            raw[f"{split}_x"].reshape(-1, 3, 32, 32), raw[f"{split}_y"], 255.0, options
        )
        for split in ("train", "test")
    )
    return train, test
