"""Objects in NumPy's npz archives, which are never unpickled."""

from __future__ import annotations

import functools
import io
import os
import pickle
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from typing import IO, Any, Callable, Union

import numpy
from numpy.lib import format as npy

from renga.serializer import Deserializer, Serializer
from renga.serializers.atomic import atomic_write
from renga.serializers.stored import as_stored, is_none, restore

File = Union[str, "os.PathLike[str]", IO[bytes]]
Ignored = Union[str, Callable[[str], bool]]


class DictionarySerializer(Serializer):
    """Collects values in the flat dictionary ``target``, with ``/`` between names."""

    def __init__(
        self, target: dict[str, numpy.ndarray] | None = None, path: str = ""
    ) -> None:
        self.target = {} if target is None else target
        self.path = path

    def __getitem__(self, key: str) -> DictionarySerializer:
        return DictionarySerializer(self.target, f"{self.path}{key.strip('/')}/")

    def __call__(self, key: str, value: Any) -> Any:
        key = self.path + key.lstrip("/")
        self.target[key] = as_stored(key, value)
        return value


class NpzDeserializer(Deserializer):
    """Reads values from an npz archive or a dictionary of arrays.

    With ``strict=False`` a name that is not there keeps its value. ``ignore_names``,
    a full name, a predicate on it or a list of those, keeps the values of what it
    names.
    """

    def __init__(
        self,
        npz: Mapping[str, numpy.ndarray],
        path: str = "",
        strict: bool = True,
        ignore_names: Ignored | Iterable[Ignored] | None = None,
    ) -> None:
        self.npz = npz
        self.path = path
        self.strict = strict
        if ignore_names is None:
            ignore_names = ()
        elif isinstance(ignore_names, str) or callable(ignore_names):
            ignore_names = (ignore_names,)
        self.ignore_names = tuple(ignore_names)

    def __getitem__(self, key: str) -> NpzDeserializer:
        path = f"{self.path}{key.strip('/')}/"
        return NpzDeserializer(self.npz, path, self.strict, self.ignore_names)

    def __call__(self, key: str, value: Any) -> Any:
        key = self.path + key.lstrip("/")
        if self._ignores(key):
            return value
        if key not in self.npz:
            if self.strict:
                raise KeyError(f"{key} is not in the archive")
            return value
        stored = _read(self.npz, key)
        return None if is_none(stored) else restore(key, stored, value)

    def _ignores(self, key: str) -> bool:
        return any(
            name(key) if callable(name) else name == key for name in self.ignore_names
        )


def save_npz(file: File, obj: Any, compression: bool = True) -> None:
    """Save ``obj`` to a file, which is replaced whole or not at all, or a file object.

    None is stored as NumPy stores it. An open file is written where it stands.
    """
    serializer = DictionarySerializer()
    serializer.save(obj)
    if isinstance(file, (str, os.PathLike)):
        with atomic_write(file) as opened:
            _write_archive(opened, serializer.target, compression)
    else:
        _write_archive(file, serializer.target, compression)


def load_npz(
    file: File,
    obj: Any,
    path: str = "",
    strict: bool = True,
    ignore_names: Ignored | Iterable[Ignored] | None = None,
) -> None:
    """Load ``obj`` from the part of an npz archive whose names begin with ``path``.

    Raises: KeyError for a name that is missing, unless ``strict`` is False;
    ValueError where the file is no archive, where it holds pickled objects (they are
    never unpickled) and where shapes differ.
    """
    try:
        archive = numpy.load(file, allow_pickle=False)
    except (EOFError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"load_npz: expected an npz archive, got {file!r}") from error
    if isinstance(archive, numpy.ndarray):
        raise ValueError(
            f"load_npz: expected an npz archive, got one array in {file!r}"
        )
    with archive:
        NpzDeserializer(archive, path, strict, ignore_names).load(obj)


def _write_archive(
    file: IO[bytes], arrays: dict[str, numpy.ndarray], compression: bool
) -> None:
    method = zipfile.ZIP_DEFLATED if compression else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", method) as archive:
        for key, array in arrays.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                if compression:
                    # Weights are noise: a search for repeats takes three times as long
                    # and finds none. Of zeros, run lengths make as little.
                    member._compressor = zlib.compressobj(  # type: ignore[attr-defined]
                        1, zlib.DEFLATED, -zlib.MAX_WBITS, strategy=zlib.Z_RLE
                    )
                _write_array(member, array)


def _write_array(member: IO[bytes], array: numpy.ndarray) -> None:
    if is_none(array):
        npy.write_array_header_1_0(member, npy.header_data_from_array_1_0(array))
        member.write(_old_name(pickle.dumps(numpy.array(None), protocol=3)))
    else:
        npy.write_array(member, array, allow_pickle=False)


def _read(npz: Mapping[str, numpy.ndarray], key: str) -> numpy.ndarray:
    try:
        return npz[key]
    except ValueError as error:
        # NumPy refuses objects. The one that we know byte for byte, None, is no danger.
        archive = getattr(npz, "zip", None)
        if archive is None or not _is_pickled_none(archive.read(f"{key}.npy")):
            raise ValueError(f"load_npz: {key!r}: {error}") from error
        return numpy.array(None)


def _is_pickled_none(member: bytes) -> bool:
    file = io.BytesIO(member)
    if npy.read_magic(file) != (1, 0):
        return False
    shape, _, dtype = npy.read_array_header_1_0(file)
    return shape == () and dtype.hasobject and file.read() in _pickled_nones()


@functools.cache
def _pickled_nones() -> frozenset[bytes]:
    nones = [pickle.dumps(numpy.array(None), protocol=p) for p in (2, 3, 4, 5)]
    return frozenset([*nones, *map(_old_name, nones)])


def _old_name(pickled: bytes) -> bytes:
    """The same with the module's name in NumPy 1, which every NumPy can read."""
    return pickled.replace(b"numpy._core", b"numpy.core")
