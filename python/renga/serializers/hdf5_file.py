"""Reading of HDF5 files that may be damaged, and of nothing beside them.

Files written here begin with a block of 512 bytes that every reader passes over. It
holds a checksum of the rest, so that what is damaged is not even given to the HDF5
library, which can crash or hang on it.
"""

from __future__ import annotations

import contextlib
import math
import zlib
from collections.abc import Iterator
from typing import IO, Any

import numpy

from renga.serializers.errors import FileFormatError, name_of, parsing
from renga.serializers.stored import Entry

SEAL_SIZE = 512
_SEAL = b"renga: CRC-32 of what follows these 512 bytes: "
_BLOCK = 1 << 20
# The filters that only unpack what is in the file, and how far: deflate, shuffle,
# Fletcher's checksum, szip and h5py's LZF. Others may be plugins.
_FILTERS = {1: 1032, 2: 1, 3: 1, 4: 1032, 32000: 256}
_UNCHECKED = 1 << 16  # bytes that an array may have without being stored


def seal(content: memoryview) -> bytes:
    """The first block of a file, twice the same, for the ``content`` after it."""
    return _seal_of(zlib.crc32(content))


def _seal_of(crc: int) -> bytes:
    return (_SEAL + b"%08x\n" % crc).ljust(SEAL_SIZE // 2, b"\0") * 2


@contextlib.contextmanager
def open_group(h5py: Any, file: IO[bytes], name: Any) -> Iterator[Any]:
    """The root of an HDF5 file.

    Raises: FileFormatError where its checksum is wrong, or where it is no HDF5 file.
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
        return  # another's file
    found = 0
    while block := file.read(_BLOCK):
        found = zlib.crc32(block, found)
    if first != _seal_of(found):
        raise FileFormatError(
            f"load_hdf5: expected the content of the checksum in {name_of(name)!r}, "
            f"got one with the CRC-32 {found:08x}"
        )


def child(group: Any, path: str, h5py: Any, name: Any) -> Any:
    """What is called ``path`` in a group of this very file, or None.

    Raises: FileFormatError for a link that may lead out of the file.
    """
    with parsing(f"load_hdf5: expected {path!r} in the file itself", name):
        for part in filter(None, path.split("/")):
            if not isinstance(group, h5py.Group):
                return None
            link = group.get(part, getlink=True)
            if link is None:
                return None
            if not isinstance(link, h5py.HardLink):
                raise ValueError(f"a link ({type(link).__name__})")
            group = group[part]
    return group


def entry_of(dataset: Any, key: str, h5py: Any, name: Any) -> Entry:
    """The entry that a data set is, read only if the file accounts for its size."""
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
    held = dataset.file.id.get_filesize()
    if stored > held or size > max(stored * ratio, _UNCHECKED):
        raise ValueError(f"{stored} bytes in {held} that stand for {size}")
