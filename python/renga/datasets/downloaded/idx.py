"""Data sets in MNIST's file format: four gzipped files, kept as two archives."""

from __future__ import annotations

import gzip
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy

from renga.dataset import download
from renga.datasets.downloaded.images import cached_arrays, image_dataset
from renga.datasets.tuple_dataset import TupleDataset

_FILES = {
    "train": ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    "test": ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
}


def idx_datasets(
    name: str, mirrors: Sequence[str], checksums: dict[str, str], *options: Any
) -> tuple[TupleDataset | numpy.ndarray, TupleDataset | numpy.ndarray]:
    """The training and the test set, fetched from ``mirrors`` if they are not here.

    ``checksums`` are those of the files by name; ``options`` go to ``image_dataset``.
    """
    folder = os.path.join(download.get_dataset_root(), "pfnet", "chainer", name)

    def part(which: str) -> TupleDataset | numpy.ndarray:
        def create() -> dict[str, numpy.ndarray]:
            images, labels = (
                _read_idx(
                    download.download(
                        [mirror + file for mirror in mirrors],
                        os.path.join(folder, file),
                        checksums[file],
                    )
                )
                for file in _FILES[which]
            )
            return {"x": images.reshape(len(images), -1), "y": labels}

        raw = cached_arrays(os.path.join(folder, f"{which}.npz"), create)
        side = math.isqrt(raw["x"].shape[1])
        images = raw["x"].reshape(-1, 1, side, side)
        return image_dataset(images, raw["y"], 255.0, *options)

    return part("train"), part("test")


def _read_idx(path: str) -> numpy.ndarray:
    """The array of bytes in a gzipped IDX file (http://yann.lecun.com/exdb/mnist)."""
    with gzip.open(path) as file:
        data = file.read()
    # Two zero bytes, the code of the type (8 is uint8), the number of axes.
    if data[:3] != b"\0\0\x08" or len(data) < 4 + 4 * data[3]:
        raise ValueError(f"idx: {path}: expected a header of bytes, got {data[:4]!r}")
    shape = numpy.frombuffer(data, ">u4", data[3], offset=4)
    values = numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * data[3])
    if values.size != math.prod(map(int, shape)):
        raise ValueError(
            f"idx: {path}: expected {tuple(map(int, shape))} values, got {values.size}"
        )
    return values.reshape(shape)
