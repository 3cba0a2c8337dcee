"""Objects in NumPy's npz archives, which are never unpickled."""

from __future__ import annotations

import contextlib
import copy
import pickle
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Callable, TypeVar, Union

import numpy
from numpy.lib import format as npy
from numpy.lib.npyio import NpzFile

from renga.core.serializer import Serializable, Serializer
from renga.serializers.archive import NpzArchive, old_name
from renga.serializers.files import File, open_to_read, open_to_write
from renga.serializers.loading import EntryDeserializer
from renga.serializers.stored import Entry, as_stored, entry_of, is_none

_Value = TypeVar("_Value")

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

    def __call__(self, key: str, value: _Value) -> _Value:
        key = self.path + key.lstrip("/")
        self.target[key] = as_stored(key, value)
        return value


class NpzDeserializer(EntryDeserializer):
    """Reads values from an npz archive or a dictionary of arrays.

    With ``strict=False`` a missing name keeps its value. ``ignore_names``,
    a full name, a predicate on it or a list of those, keeps the values of what it
    names. ``file`` names the archive in messages.
    """

    _container = "archive"

    def __init__(
        self,
        npz: Mapping[str, object],
        path: str = "",
        strict: bool = True,
        ignore_names: Ignored | Iterable[Ignored] | None = None,
        file: object = None,
    ) -> None:
        # NumPy's own archives allocate whatever size their headers state.
        self.npz = NpzArchive(npz, file) if isinstance(npz, NpzFile) else npz
        self.path = path
        self.strict = strict
        self.file = file
        if ignore_names is None:
            ignore_names = ()
        elif isinstance(ignore_names, str) or not isinstance(ignore_names, Iterable):
            ignore_names = (ignore_names,)
        self.ignore_names = tuple(ignore_names)
        for name in self.ignore_names:
            if not isinstance(name, str) and not callable(name):
                raise ValueError(
                    "NpzDeserializer: expected ignore_names of strings and functions, "
                    f"got {name!r}"
                )

    def __getitem__(self, key: str) -> NpzDeserializer:
        branch = copy.copy(self)
        branch.path = f"{self.path}{key.strip('/')}/"
        return branch

    def __call__(self, key: str, value: _Value) -> _Value:
        key = self.path + key.lstrip("/")
        if self._ignores(key):
            return value
        return self._restore(key, self._entry(key), value)

    def _entry(self, key: str) -> Entry | None:
        if key not in self.npz:
            return None
        if isinstance(self.npz, NpzArchive):
            return self.npz.entry(key)
        return entry_of(self.npz[key])

    def _ignores(self, key: str) -> bool:
        return any(
            name(key) if callable(name) else name == key for name in self.ignore_names
        )


def serialize(obj: Serializable | Mapping[str, object]) -> dict[str, numpy.ndarray]:
    """The arrays that ``save_npz`` would write, by name."""
    serializer = DictionarySerializer()
    serializer.save(obj)
    return serializer.target


def save_npz(
    file: File, obj: Serializable | Mapping[str, object], compression: bool = True
) -> None:
    """Save ``obj`` to a file, which is replaced atomically, or to a file object.

    The values of a mapping have its keys for names. None is stored as NumPy stores it.
    An open file is written from its position.
    """
    arrays = serialize(obj)
    with open_to_write(file) as opened:
        _write_archive(opened, arrays, compression)


def load_npz(
    file: File,
    obj: Serializable,
    path: str = "",
    strict: bool = True,
    ignore_names: Ignored | Iterable[Ignored] | None = None,
) -> None:
    """Load ``obj`` from the arrays of an npz archive whose names begin with ``path``.

    If loading fails, ``obj`` is unchanged.

    Raises:
        KeyError: a name is missing, unless ``strict`` is False.
        FileFormatError: the file is not an archive, is damaged, or holds pickled
            objects, which are never run.
        ValueError: shapes differ.
        TypeError: dtypes are of different kinds.
        OSError: the file cannot be read.
    """
    with open_archive(file) as archive:
        NpzDeserializer(archive, path, strict, ignore_names, file).load(obj)


@contextlib.contextmanager
def open_archive(file: File) -> Iterator[NpzArchive]:
    """The arrays in an npz archive.

    Raises:
        FileFormatError: it is not an npz archive.
        OSError: it cannot be read.
    """
    with open_to_read(file) as opened:
        yield NpzArchive(opened, file)


def _write_archive(
    file: IO[bytes], arrays: dict[str, numpy.ndarray], compression: bool
) -> None:
    method = zipfile.ZIP_DEFLATED if compression else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", method) as archive:
        for key, array in arrays.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                if compression:
                    # Weights are noise: searching for repeats takes three times as long
                    # and finds none. Run-length coding compresses zeros as well.
                    member._compressor = zlib.compressobj(  # type: ignore[attr-defined]
                        1, zlib.DEFLATED, -zlib.MAX_WBITS, strategy=zlib.Z_RLE
                    )
                _write_array(member, array)


def _write_array(member: IO[bytes], array: numpy.ndarray) -> None:
    if is_none(array):
        npy.write_array_header_1_0(member, npy.header_data_from_array_1_0(array))
        member.write(old_name(pickle.dumps(numpy.array(None), protocol=3)))
    else:
        npy.write_array(member, array, allow_pickle=False)
