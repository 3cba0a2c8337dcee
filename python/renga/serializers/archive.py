"""Reads arrays of untrusted npz archives."""

from __future__ import annotations

import functools
import io
import math
import pickle
import zipfile
from collections.abc import Iterator, Mapping
from typing import IO, Any

import numpy
from numpy.lib import format as npy
from numpy.lib.npyio import NpzFile

from renga.serializers.files import parsing
from renga.serializers.stored import Entry
from renga.utils.fork_safe_lock import ForkSafeLock

_LONGEST_HEADER = 1 << 16
_LARGEST_NONE = 1 << 12
_BLOCK = 1 << 20
_DEFLATE = 1032  # the largest ratio of deflate
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
# CPython before 3.11.8 counts the depth of all threads' syntax trees together and
# raises SystemError if two of them parse headers at once (python/cpython#106905).
_PARSING = ForkSafeLock()


class NpzArchive(Mapping[str, numpy.ndarray]):
    """The arrays of an npz archive by name, or entries from which to read them.

    Memory is allocated only as far as the archive's own size allows, checksums are
    verified, and pickles are not run.

    Raises:
        FileFormatError: the archive or an array is damaged.
    """

    def __init__(self, file: IO[bytes] | NpzFile, name: object = None) -> None:
        self._name = file if name is None else name
        self._file = file  # closed by NumPy when nothing refers to it
        if isinstance(file, NpzFile):
            if file.zip is None:
                raise ValueError(
                    "NpzDeserializer: expected an open archive, got a closed one"
                )
            self._zip: zipfile.ZipFile = file.zip
        else:
            with parsing("load_npz: expected an npz archive", self._name):
                self._zip = zipfile.ZipFile(file)
                # Names have no checksum but are stored twice; this compares them.
                for info in self._zip.infolist():
                    self._zip.open(info).close()
        stream: Any = self._zip.fp
        self._size = stream.seek(0, io.SEEK_END)

    def __iter__(self) -> Iterator[str]:
        names = self._zip.namelist()
        return (name[:-4] for name in names if name.endswith(".npy"))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        return f"{key}.npy" in self._zip.NameToInfo

    def __getitem__(self, key: str) -> numpy.ndarray:
        return self.entry(key).read()

    def entry(self, key: str) -> Entry:
        """Shape, dtype and how to read an array; KeyError if there is none."""
        info = self._zip.NameToInfo[f"{key}.npy"]
        with self._parsing(key):
            self._check_sizes(info)
            with self._zip.open(info) as member:
                shape, _, dtype, start = _read_header(member)
            if dtype.hasobject:
                self._check_none(info, shape, start)
                return Entry(None, dtype, functools.partial(numpy.array, None))
            _check_length(shape, dtype, info.file_size - start)
        return Entry(shape, dtype, functools.partial(self._read, key, info))

    def is_whole(self) -> bool:
        """Whether all checksums are correct."""
        try:
            return self._zip.testzip() is None
        except Exception:  # any exception of the zip module for a damaged archive
            return False

    def _parsing(self, key: str) -> Any:
        return parsing(f"load_npz: expected an array called {key!r}", self._name)

    def _check_sizes(self, info: zipfile.ZipInfo) -> None:
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"compressed by method {info.compress_type}")
        most = info.compress_size
        if info.compress_type == zipfile.ZIP_DEFLATED:
            most *= _DEFLATE
        if info.compress_size > self._size or info.file_size > most:
            raise ValueError(
                f"{info.compress_size} bytes of {self._size} that expand to "
                f"{info.file_size}"
            )

    def _check_none(
        self, info: zipfile.ZipInfo, shape: tuple[int, ...], start: int
    ) -> None:
        """Refuses pickled objects except None, which is recognised byte for byte."""
        is_small_scalar = shape == () and info.file_size <= _LARGEST_NONE
        if not is_small_scalar or self._zip.read(info)[start:] not in _pickled_nones():
            raise ValueError(
                "pickled objects, which are never run (allow_pickle=False)"
            )

    def _read(self, key: str, info: zipfile.ZipInfo) -> numpy.ndarray:
        with self._parsing(key), self._zip.open(info) as member:
            shape, columns, dtype, start = _read_header(member)
            length = info.file_size - start
            _check_length(shape, dtype, length)
            data = numpy.empty(length, numpy.uint8)
            filled = 0
            while block := member.read(_BLOCK):  # to the end, where the checksum is
                data[filled : filled + len(block)] = memoryview(block)
                filled += len(block)
            if filled < length:
                raise ValueError(f"{filled} bytes of {length}")
        return numpy.ndarray(shape, dtype, data, order="F" if columns else "C")


def _read_header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, numpy.dtype, int]:
    """Shape, whether the order is Fortran's, dtype and the number of bytes read."""
    start = member.read(8)
    version = tuple(start[6:])
    if start[:6] != npy.MAGIC_PREFIX or version not in _HEADERS:
        raise ValueError(f"the first bytes {start!r}")
    length = member.read(2 if version == (1, 0) else 4)
    size = int.from_bytes(length, "little")
    if size > _LONGEST_HEADER:
        raise ValueError(f"a header of {size} bytes")
    header = member.read(size)
    try:
        with _PARSING:
            shape, columns, dtype = _HEADERS[version](io.BytesIO(length + header))
    except MemoryError as error:  # raised by Python for deep nesting
        raise ValueError("a header that cannot be parsed") from error
    return shape, columns, dtype, 8 + len(length) + len(header)


def _check_length(shape: tuple[int, ...], dtype: numpy.dtype, length: int) -> None:
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != length:
        raise ValueError(f"{length} bytes for shape {shape} of {dtype}")


@functools.cache
def _pickled_nones() -> frozenset[bytes]:
    nones = [pickle.dumps(numpy.array(None), protocol=p) for p in (2, 3, 4, 5)]
    return frozenset([*nones, *map(old_name, nones)])


def old_name(pickled: bytes) -> bytes:
    """The pickle with the module's name in NumPy 1, which every NumPy can read."""
    return pickled.replace(b"numpy._core", b"numpy.core")
