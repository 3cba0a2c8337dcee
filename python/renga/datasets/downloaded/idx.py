"""Data sets in MNIST's file format: four gzipped files, cached as two archives."""

from __future__ import annotations

import gzip
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy

from renga.dataset import download
from renga.datasets.downloaded.images import ImageOptions, cached_arrays, image_dataset
from renga.datasets.tuple_dataset import TupleDataset
from renga.serializers.files import FileFormatError, parsing

_BLOCK = 1 << 20

_FILES = {
    "train": ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    "test": ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
}


def idx_datasets(
    name: str, mirrors: Sequence[str], checksums: dict[str, str], options: ImageOptions
) -> tuple[TupleDataset | numpy.ndarray, TupleDataset | numpy.ndarray]:
    """The training and the test set, downloaded from ``mirrors`` unless cached.

    ``checksums`` are those of the files by name.
    """

    def load(split: str) -> TupleDataset | numpy.ndarray:
        raw = idx_arrays(name, mirrors, checksums, split)
        side = math.isqrt(raw["x"].shape[1])
        images = raw["x"].reshape(-1, 1, side, side)
        return image_dataset(images, raw["y"], 255.0, options)

    return load("train"), load("test")


def idx_arrays(
    name: str, mirrors: Sequence[str], checksums: dict[str, str], split: str
) -> dict[str, numpy.ndarray]:
    """The pixels, a row per image, as ``x``, and the labels as ``y``."""
    folder = os.path.join(download.get_dataset_root(), "pfnet", "chainer", name)

    def create() -> dict[str, numpy.ndarray]:
        images, labels = (
            _read_idx(
                download.download(
                    [mirror + file for mirror in mirrors],
                    os.path.join(folder, file),
                    checksums[file],
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
