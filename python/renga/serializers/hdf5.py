"""Objects in HDF5 files, through h5py."""

from __future__ import annotations

import io
import os
from types import ModuleType
from typing import Any

import numpy

from renga.serializer import Deserializer, Serializer
from renga.serializers.atomic import atomic_write
from renga.serializers.stored import as_stored, is_none, restore


class HDF5Serializer(Serializer):
    """Saves values as data sets of an h5py group; None is an empty data set.

    ``compression`` is gzip's level, or whatever else h5py takes.
    """

    def __init__(self, group: Any, compression: Any = 4) -> None:
        self.group = group
        self.compression = compression
        self._h5py = _import_h5py()

    def __getitem__(self, key: str) -> HDF5Serializer:
        group = self.group.require_group(key.strip("/"))
        return HDF5Serializer(group, self.compression)

    def __call__(self, key: str, value: Any) -> Any:
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


class HDF5Deserializer(Deserializer):
    """Reads values from an h5py group.

    With ``strict=False`` a name that is not there keeps its value.
    """

    def __init__(self, group: Any, strict: bool = True) -> None:
        self.group = group
        self.strict = strict
        self._h5py = _import_h5py()

    def __getitem__(self, key: str) -> HDF5Deserializer:
        # A branch without values is in no file: what is missing shows at a value.
        group = None if self.group is None else self.group.get(key.strip("/"))
        return HDF5Deserializer(group, self.strict)

    def __call__(self, key: str, value: Any) -> Any:
        key = key.lstrip("/")
        if self.group is None or key not in self.group:
            if self.strict:
                raise KeyError(f"{key} is not in the file")
            return value
        dataset = self.group[key]
        if dataset.shape is None:
            return None
        text = self._h5py.check_string_dtype(dataset.dtype)
        if text is not None and text.encoding == "utf-8":
            return restore(key, numpy.array(dataset.asstr()[()], dtype=str), value)
        return restore(key, numpy.asarray(dataset), value)


def save_hdf5(filename: str | os.PathLike[str], obj: Any, compression: Any = 4) -> None:
    """Save ``obj`` to an HDF5 file, which is replaced whole or not at all.

    Raises: RuntimeError where h5py is not installed.
    """
    h5py = _import_h5py()
    # In memory first: the HDF5 library can crash the process when a disk is full.
    image = io.BytesIO()
    with h5py.File(image, "w") as group:
        HDF5Serializer(group, compression).save(obj)
    with atomic_write(filename) as file:
        file.write(image.getbuffer())


def load_hdf5(filename: str | os.PathLike[str], obj: Any) -> None:
    """Load ``obj`` from an HDF5 file.

    Raises: RuntimeError where h5py is not installed; KeyError for a name that is
    missing; ValueError where shapes differ.
    """
    h5py = _import_h5py()
    with h5py.File(filename, "r") as group:
        HDF5Deserializer(group).load(obj)


def _import_h5py() -> ModuleType:
    try:
        import h5py
    except ImportError:
        raise RuntimeError(
            "serializers: HDF5 files need h5py; install it with `pip install h5py`"
        ) from None
    return h5py
