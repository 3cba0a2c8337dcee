"""Objects in HDF5 files, through h5py."""

from __future__ import annotations

import copy
import io
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from renga.core.serializer import Serializable, Serializer
from renga.serializers.files import File, open_to_read, open_to_write
from renga.serializers.hdf5_file import SEAL_SIZE, child, entry_of, open_group, seal
from renga.serializers.loading import EntryDeserializer
from renga.serializers.stored import as_stored, is_none

if TYPE_CHECKING:
    import h5py

_Value = TypeVar("_Value")


class HDF5Serializer(Serializer):
    """Saves values as data sets of an h5py group; None is an empty data set.

    ``compression`` is gzip's level, or whatever else h5py takes.
    """

    def __init__(self, group: h5py.Group, compression: object = 4) -> None:
        self.group = group
        self.compression = compression
        self._h5py = _import_h5py()

    def __getitem__(self, key: str) -> HDF5Serializer:
        group = self.group.require_group(key.strip("/"))
        return HDF5Serializer(group, self.compression)

    def __call__(self, key: str, value: _Value) -> _Value:
        key = key.lstrip("/")
        array = as_stored(key, value)
        if is_none(array):
            self.group.create_dataset(key, data=self._h5py.Empty("f"))
            return value
        dtype = None
        if array.dtype.kind == "U":
            dtype = self._h5py.string_dtype()
            array = array.astype(object)
        # HDF5 compresses chunks, and a single value or none has none.
        compression = self.compression if array.size > 1 else None
        self.group.create_dataset(key, data=array, dtype=dtype, compression=compression)
        return value


class HDF5Deserializer(EntryDeserializer):
    """Reads values from an h5py group, without following links to other files.

    With ``strict=False`` a missing name keeps its value. ``file`` names the file in
    messages.
    """

    def __init__(
        self, group: h5py.Group, strict: bool = True, file: object = None
    ) -> None:
        self.group = group
        self.strict = strict
        self.file = file
        self._path = ""
        self._h5py = _import_h5py()

    def __getitem__(self, key: str) -> HDF5Deserializer:
        # A branch without values is not stored, so only a missing value is an error.
        branch = copy.copy(self)
        branch.group = self._child(key)
        branch._path = f"{self._path}{key.strip('/')}/"
        return branch

    def __call__(self, key: str, value: _Value) -> _Value:
        found = self._child(key)
        key = self._path + key.lstrip("/")
        entry = None
        if found is not None:
            entry = entry_of(found, key, self._h5py, self.file)
        return self._restore(key, entry, value)

    def _child(self, key: str) -> Any:
        if self.group is None:
            return None
        return child(self.group, key, self._h5py, self.file)


def save_hdf5(
    filename: File, obj: Serializable | Mapping[str, object], compression: object = 4
) -> None:
    """Save ``obj`` to an HDF5 file, which is replaced atomically.

    The values of a mapping have its keys for names.

    Raises:
        RuntimeError: h5py is not installed.
    """
    h5py = _import_h5py()
    # Written in memory first: the HDF5 library can crash when a disk is full.
    image = io.BytesIO()
    with h5py.File(image, "w", userblock_size=SEAL_SIZE) as group:
        HDF5Serializer(group, compression).save(obj)
    content = image.getbuffer()
    content[:SEAL_SIZE] = seal(content[SEAL_SIZE:])
    with open_to_write(filename) as opened:
        opened.write(content)


def load_hdf5(filename: File, obj: Serializable) -> None:
    """Load ``obj`` from an HDF5 file, by its path or open.

    If loading fails, ``obj`` is unchanged. Links to other files are not followed. Files
    written by ``save_hdf5`` have a checksum; others are checked by the HDF5 library
    alone, which is not safe for untrusted files.

    Raises:
        RuntimeError: h5py is not installed.
        KeyError: a name is missing.
        FileFormatError: the file is damaged or not an HDF5 file.
        ValueError: shapes differ.
        TypeError: dtypes are of different kinds.
        OSError: the file cannot be read.
    """
    h5py = _import_h5py()
    with open_to_read(filename) as file, open_group(h5py, file, filename) as group:
        HDF5Deserializer(group, file=filename).load(obj)


def _import_h5py() -> ModuleType:
    try:
        import h5py
    except ImportError:
        raise RuntimeError(
            "serializers: HDF5 files need h5py; install it with `pip install h5py`"
        ) from None
    return h5py
