"""Reads HDF5 files that may be damaged, and no files that they link to.

Files written here begin with a block of 512 bytes that every reader skips. It holds
a checksum of the rest, so that a damaged file is never passed to the HDF5 library,
which can crash or hang on it.
"""

from __future__ import annotations

import contextlib
import math
import zlib
from collections.abc import Iterator
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

import numpy

from renga.serializers.files import FileFormatError, name_of, parsing
from renga.serializers.stored import Entry

if TYPE_CHECKING:
    import h5py

SEAL_SIZE = 512
_SEAL = b"renga: CRC-32 of what follows these 512 bytes: "
_BLOCK = 1 << 20
# The filters that only unpack what is in the file, and how far: deflate, shuffle,
# Fletcher's checksum, szip and h5py's LZF. Others may be plugins.
_FILTERS = {1: 1032, 2: 1, 3: 1, 4: 1032, 32000: 256}
_UNCHECKED = 1 << 16  # largest array that may be not stored, in bytes


def seal(content: memoryview) -> bytes:
    """The first block of a file with ``content`` after it: two equal halves."""
    return _seal_of(zlib.crc32(content))


def _seal_of(crc: int) -> bytes:
    return (_SEAL + b"%08x\n" % crc).ljust(SEAL_SIZE // 2, b"\0") * 2


@contextlib.contextmanager
def open_group(h5py: ModuleType, file: IO[bytes], name: object) -> Iterator[h5py.Group]:
    """The root of an HDF5 file.

    Raises:
        FileFormatError: the checksum is wrong, or it is not an HDF5 file.
    """
    _check_seal(file, name)
    file.seek(0)
    with parsing("load_hdf5: expected an HDF5 file", name):
        group = h5py.File(file, "r")
    with group:
        yield group


def _check_seal(file: IO[bytes], name: Any) -> None:
    file.seek(0)
    first = file.read(SEAL_SIZE)
    if _SEAL not in first:
        return  # a file of another writer
    found = 0
    while block := file.read(_BLOCK):
        found = zlib.crc32(block, found)
    if first != _seal_of(found):
        raise FileFormatError(
            f"load_hdf5: expected the content of the checksum in {name_of(name)!r}, "
            f"got one with the CRC-32 {found:08x}"
        )


def child(group: h5py.Group, path: str, h5py: ModuleType, name: object) -> h5py.Group:
    """The object at ``path`` in a group of this file, or None.

    Raises:
        FileFormatError: a link may point outside the file.
    """
    with parsing(f"load_hdf5: expected {path!r} in the file itself", name):
        for key in filter(None, path.split("/")):
            if not isinstance(group, h5py.Group):
                return None
            link = group.get(key, getlink=True)
            if link is None:
                return None
            if not isinstance(link, h5py.HardLink):
                raise ValueError(f"a link ({type(link).__name__})")
            group = group[key]
    return group


def entry_of(dataset: h5py.Dataset, key: str, h5py: ModuleType, name: object) -> Entry:
    """The entry of a data set, read only if its size fits the file's."""
    with parsing(f"load_hdf5: expected an array called {key!r}", name):
        if not isinstance(dataset, h5py.Dataset):
            raise ValueError(f"a {type(dataset).__name__}")
        if dataset.is_virtual or dataset.external:
            raise ValueError("one that is stored in other files")
        text = h5py.check_string_dtype(dataset.dtype)
        is_text = text is not None and (text.length is None or text.encoding == "utf-8")
        dtype = numpy.dtype("U") if is_text else dataset.dtype
        if dtype.hasobject or dtype.subdtype is not None:
            raise ValueError(f"one of {dtype}")
        if dataset.shape is not None:
            _check_size(dataset)

    def read() -> numpy.ndarray:
        with parsing(f"load_hdf5: expected an array called {key!r}", name):
            if is_text:
                return numpy.array(dataset.asstr()[()], dtype=str)
            return numpy.asarray(dataset)

    return Entry(dataset.shape, dtype, read)


def _check_size(dataset: Any) -> None:
    creation = dataset.id.get_create_plist()
    ratio = 1
    for i in range(creation.get_nfilters()):
        code = creation.get_filter(i)[0]
        if code not in _FILTERS:
            raise ValueError(f"a data set packed by filter {code}")
        ratio *= _FILTERS[code]
    size = math.prod(dataset.shape) * dataset.dtype.itemsize
    stored = dataset.id.get_storage_size()
    file_size = dataset.file.id.get_filesize()
    if stored > file_size or size > max(stored * ratio, _UNCHECKED):
        raise ValueError(f"{stored} bytes in {file_size} that expand to {size}")
