"""Data sets in MNIST's file format: four gzipped files, cached as two archives."""

from __future__ import annotations

import gzip
import math
import os
from typing import Any, NamedTuple

import numpy

from renga.dataset import download
from renga.datasets.downloaded.images import ImageOptions, cached_arrays, image_dataset
from renga.datasets.tuple_dataset import TupleDataset
from renga.serializers.files import FileFormatError, parsing

_BLOCK = 1 << 20


class IdxSource(NamedTuple):
    """Where the files of a data set are, and their checksums by name."""

    mirrors: tuple[str, ...]
    checksums: dict[str, str]


# By the names of their folders.
SOURCES = {
    "mnist": IdxSource(
        (
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
            "http://yann.lecun.com/exdb/mnist/",  # Chainer's
        ),
        {
            "train-images-idx3-ubyte.gz": "sha256:"
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "train-labels-idx1-ubyte.gz": "sha256:"
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "t10k-images-idx3-ubyte.gz": "sha256:"
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "t10k-labels-idx1-ubyte.gz": "sha256:"
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        },
    ),
    "fashion-mnist": IdxSource(
        (
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        ),
        {
            "train-images-idx3-ubyte.gz": "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "train-labels-idx1-ubyte.gz": "md5:25c81989df183df01b3e8a0aad5dffbe",
            "t10k-images-idx3-ubyte.gz": "md5:bef4ecab320f06d8554ea6380940ec79",
            "t10k-labels-idx1-ubyte.gz": "md5:bb300cfdad3c16e7a12a480ee83cd310",
        },
    ),
    "kuzushiji_mnist": IdxSource(
        ("http://codh.rois.ac.jp/kmnist/dataset/kmnist/",),
        {
            "train-images-idx3-ubyte.gz": "md5:bdb82020997e1d708af4cf47b453dcf7",
            "train-labels-idx1-ubyte.gz": "md5:e144d726b3acfaa3e44228e80efcd344",
            "t10k-images-idx3-ubyte.gz": "md5:5c965bf0a639b31b8f53240b1b52f4d7",
            "t10k-labels-idx1-ubyte.gz": "md5:7320c461ea6c1c855c0b718fb2a4b134",
        },
    ),
}

_FILES = {
    "train": ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    "test": ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
}


def idx_datasets(
    name: str, options: ImageOptions
) -> tuple[TupleDataset | numpy.ndarray, TupleDataset | numpy.ndarray]:
    """The training and the test set of a name in SOURCES, downloaded unless cached."""

    def load(split: str) -> TupleDataset | numpy.ndarray:
        raw = idx_arrays(name, split)
        side = math.isqrt(raw["x"].shape[1])
        images = raw["x"].reshape(-1, 1, side, side)
        return image_dataset(images, raw["y"], 255.0, options)

    return load("train"), load("test")


def idx_arrays(name: str, split: str) -> dict[str, numpy.ndarray]:
    """The pixels, a row per image, as ``x``, and the labels as ``y``."""
    source = SOURCES[name]
    folder = os.path.join(download.get_dataset_root(), "pfnet", "chainer", name)

    def create() -> dict[str, numpy.ndarray]:
        images, labels = (
            _read_idx(
                download.download(
                    [mirror + file for mirror in source.mirrors],
                    os.path.join(folder, file),
                    source.checksums[file],
                )
            )
            for file in _FILES[split]
        )
        return {"x": images.reshape(len(images), -1), "y": labels}

    return cached_arrays(os.path.join(folder, f"{split}.npz"), create)


def _read_idx(path: str) -> numpy.ndarray:
    """The array of bytes in a gzipped IDX file (http://yann.lecun.com/exdb/mnist)."""
    with (
        open(path, "rb") as raw,
        parsing(f"idx: {path}: expected a gzipped file", path),
    ):
        with gzip.open(raw) as file:
            return _read_array(path, file)


def _read_array(path: str, file: Any) -> numpy.ndarray:
    # Two zero bytes, the code of the type (8 is uint8), the number of axes.
    start = file.read(4)
    sizes = file.read(4 * start[3]) if start[:3] == b"\0\0\x08" and start[3:] else b""
    if not sizes or len(sizes) < 4 * start[3]:
        raise FileFormatError(
            f"idx: {path}: expected a header of bytes, got {start + sizes!r}"
        )
    shape = tuple(map(int, numpy.frombuffer(sizes, ">u4")))
    expected = math.prod(shape)
    data = bytearray()
    while block := file.read(_BLOCK):  # to the end: there the checksum is
        data += block
        if len(data) > expected:
            break
    if len(data) != expected:
        raise FileFormatError(
            f"idx: {path}: expected {shape} values, got {len(data)}"
            f"{' and more' if len(data) > expected else ''}"
        )
    return numpy.frombuffer(data, numpy.uint8).reshape(shape)
