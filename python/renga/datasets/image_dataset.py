"""Images in files and in zip archives, read on demand."""

from __future__ import annotations

import bisect
import os
import re
import zipfile
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy

from renga.core.dtypes import get_dtype
from renga.core.types import DTypeLike, Path
from renga.dataset import DatasetMixin
from renga.serializers.files import FileFormatError, parsing

Pairs = Sequence[tuple[Path, Any]]
available = find_spec("PIL") is not None  # whether images can be read
_PIXELS_A_BYTE = 4096  # the ratio of LZW; that of other formats is smaller
_MOST_PIXELS = 1 << 24  # in any file
_LABEL = re.compile(r"[+-]?\d{1,18}")


class ImageDataset(DatasetMixin):
    """The images whose paths are given, or listed in a file one a line.

    Pillow reads them.

    Shapes:
        image: (channels, height, width), with one channel if it is grey

    Raises:
        ImportError: Pillow is not installed.
        FileFormatError: a file is not an image.
    """

    def __init__(
        self,
        paths: Path | Iterable[Path],
        root: Path = ".",
        dtype: DTypeLike | None = None,
    ) -> None:
        names = _lines(paths) if isinstance(paths, (str, os.PathLike)) else paths
        self._paths: list[Path] = [*names]
        self._root = root
        self._dtype = get_dtype(dtype)

    def __len__(self) -> int:
        return len(self._paths)

    def get_example(self, i: int) -> numpy.ndarray:
        return _image_at(os.path.join(self._root, self._paths[i]), self._dtype)


class LabeledImageDataset(DatasetMixin):
    """Images with labels: pairs of path and label, or a file of them, one a line."""

    def __init__(
        self,
        pairs: Path | Pairs,
        root: Path = ".",
        dtype: DTypeLike | None = None,
        label_dtype: DTypeLike = numpy.int32,
    ) -> None:
        if isinstance(pairs, (str, os.PathLike)):
            pairs = _read_pairs(pairs)
        # Subclasses that were written for Chainer read them by these names.
        self._pairs: Pairs = [(path, label) for path, label in pairs]
        self._root = root
        self._dtype = get_dtype(dtype)
        self._label_dtype = label_dtype

    def __len__(self) -> int:
        return len(self._pairs)

    def get_example(self, i: int) -> tuple[numpy.ndarray, numpy.ndarray]:
        path, label = self._pairs[i]
        image = _image_at(os.path.join(self._root, path), self._dtype)
        return image, numpy.array(label, self._label_dtype)


class ZippedImageDataset(DatasetMixin):
    """All images of a zip archive, in its order."""

    def __init__(self, zipfilename: Path, dtype: DTypeLike | None = None) -> None:
        self._archive = _Archive(zipfilename)
        self._names = [
            info.filename
            for info in self._archive.open().infolist()
            if _holds_image(info)
        ]
        self._dtype = get_dtype(dtype)

    def __len__(self) -> int:
        return len(self._names)

    def get_example(self, i_or_filename: int | str) -> numpy.ndarray:
        """The image of an index, or of a name in the archive."""
        name = i_or_filename
        if not isinstance(name, str):
            name = self._names[name]
        return self._archive.read(name, self._dtype)


class MultiZippedImageDataset(DatasetMixin):
    """The images of several zip archives, one archive after the other."""

    def __init__(
        self, zipfilenames: Iterable[Path], dtype: DTypeLike | None = None
    ) -> None:
        self._parts = [ZippedImageDataset(name, dtype) for name in zipfilenames]
        self._ends = numpy.cumsum([len(part) for part in self._parts]).tolist()

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def get_example(self, i: int) -> numpy.ndarray:
        if i < 0:
            i += len(self)
        if not 0 <= i < len(self):
            raise IndexError(
                f"{type(self).__name__}: expected an index below {len(self)}, got {i}"
            )
        k = bisect.bisect(self._ends, i)
        return self._parts[k].get_example(i - self._ends[k])


class LabeledZippedImageDataset(DatasetMixin):
    """Images of a zip archive and labels of a file with pairs of both, one a line."""

    def __init__(
        self,
        zipfilename: Path,
        labelfilename: Path,
        dtype: DTypeLike | None = None,
        label_dtype: DTypeLike = numpy.int32,
    ) -> None:
        self._archive = _Archive(zipfilename)
        self._pairs = _read_pairs(labelfilename)
        self._dtype = get_dtype(dtype)
        self._label_dtype = label_dtype

    def __len__(self) -> int:
        return len(self._pairs)

    def get_example(self, i: int) -> tuple[numpy.ndarray, numpy.ndarray]:
        name, label = self._pairs[i]
        image = self._archive.read(os.fspath(name), self._dtype)
        return image, numpy.array(label, self._label_dtype)


class _Archive:
    """A zip archive, opened by each process separately."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: tuple[int, zipfile.ZipFile] | None = None

    def open(self) -> zipfile.ZipFile:
        if self._opened is None or self._opened[0] != os.getpid():
            with parsing(f"{self._path}: expected a zip archive", self._path):
                self._opened = os.getpid(), zipfile.ZipFile(self._path)
        return self._opened[1]

    def read(self, name: str, dtype: DTypeLike) -> numpy.ndarray:
        archive = self.open()
        if name not in archive.NameToInfo:
            raise KeyError(f"{name} is not in the archive {os.fspath(self._path)!r}")
        what = f"{os.fspath(self._path)}: {name}"
        with parsing(f"{what}: expected an image", what), archive.open(name) as file:
            return _read(file, dtype, what, archive.getinfo(name).file_size)

    def __getstate__(self) -> dict[str, Any]:
        return {"_path": self._path, "_opened": None}


def _image_at(path: str, dtype: DTypeLike) -> numpy.ndarray:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        return _read(file, dtype, path, size)


def _holds_image(info: zipfile.ZipInfo) -> bool:
    from PIL import Image

    extension = os.path.splitext(info.filename)[1].lower()
    return not info.is_dir() and extension in Image.registered_extensions()


def _read(file: Any, dtype: DTypeLike, name: str, size: int) -> numpy.ndarray:
    """The image in a file of ``size`` bytes."""
    from PIL import Image

    with parsing(f"{name}: expected an image", name), Image.open(file) as image:
        # Until here only the header has been read.
        if image.width * image.height > max(_MOST_PIXELS, _PIXELS_A_BYTE * size):
            raise ValueError(f"{image.width}x{image.height} pixels in {size} bytes")
        array = numpy.asarray(image)
    array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
    # Processes share adjoining numbers without a copy through a pipe.
    return numpy.asarray(array, dtype, order="C")


def _lines(path: Path) -> list[str]:
    with open(path, encoding="utf-8") as file:
        with parsing(f"{os.fspath(path)}: expected lines of text in UTF-8", path):
            return [line.strip() for line in file if line.strip()]


def _read_pairs(path: Path) -> Pairs:
    """Path and integer label of each line; a path may contain spaces."""
    pairs = []
    for number, line in enumerate(_lines(path), 1):
        name, _, label = line.rpartition(" ")
        if not name or not _LABEL.fullmatch(label):
            raise FileFormatError(
                f"{os.fspath(path)}: expected a path and a label in line {number}, "
                f"got {line!r}"
            )
        pairs.append((name.strip(), int(label)))
    return pairs
