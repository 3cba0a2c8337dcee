"""Loads an object completely or not at all."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy

from renga.backends import cuda
from renga.core.serializer import Deserializer, Serializable
from renga.serializers.files import name_of
from renga.serializers.stored import Entry, restore


class EntryDeserializer(Deserializer):
    """Base of deserializers of named entries.

    With ``strict=False`` a missing name keeps its value. ``file`` is for messages.
    """

    strict: bool = True
    file: Any = None
    _container = "file"
    _changes: _Changes | None = None

    def load(self, obj: Serializable) -> None:
        """Load every value that ``obj.serialize`` requests.

        If that raises, ``obj`` gets its old values back.
        """
        self._changes = changes = _Changes()
        self.loaded_object = obj
        try:
            obj.serialize(self)
        except BaseException:
            changes.undo(obj)
            raise
        finally:
            self._changes = None
        if changes.requested and not changes.found:
            where = "" if self.file is None else f" of {name_of(self.file)!r}"
            warnings.warn(
                f"serializer: nothing was loaded: none of "
                f"{changes.requested} names are among those{where}",
                stacklevel=3,
            )

    def on_failure(self, undo: Callable[[], object]) -> None:
        if self._changes is not None:
            self._changes.callbacks.append(undo)

    def _restore(self, key: str, entry: Entry | None, value: Any) -> Any:
        """The stored value of ``key``, or None if there is no such name.

        Raises:
            KeyError: the name is missing.
            ValueError, TypeError, FileFormatError: as ``restore``.
        """
        changes = self._changes
        if changes is not None:
            changes.requested += 1
        where = "" if self.file is None else f" in {name_of(self.file)!r}"
        if entry is None:
            if self.strict:
                raise KeyError(f"{key} is not in the {self._container}{where}")
            return value
        if changes is not None:
            changes.record(key, value)
        return restore(f"{key!r}{where}", entry, value)


class _Changes:
    """The old values of an object, restored if loading fails."""

    def __init__(self) -> None:
        self.requested = self.found = 0
        self._values: dict[str, Any] = {}
        self._copies: dict[int, tuple[Any, Any]] = {}
        self.callbacks: list[Callable[[], Any]] = []

    def record(self, key: str, value: object) -> None:
        """Keeps ``value``, which is about to be changed."""
        self.found += 1
        self._values.setdefault(key, self._keep(value))

    def undo(self, obj: Any) -> None:
        """Restores the values of ``obj``."""
        for array, saved in self._copies.values():
            if isinstance(array, cuda.ndarray):
                array.set(saved)
            elif array.flags.writeable:
                numpy.copyto(array, saved)
        # Only ``obj`` can restore values that are not arrays, and it may fail.
        with contextlib.suppress(Exception):
            obj.serialize(_OldValues(self._values, self.callbacks))
        for callback in reversed(self.callbacks):
            callback()

    def _keep(self, value: Any) -> Any:
        """A copy of an array; anything else as it is."""
        if not isinstance(value, (numpy.ndarray, cuda.ndarray)):
            return value
        if id(value) not in self._copies:
            saved = (
                cuda.to_cpu(value) if isinstance(value, cuda.ndarray) else value.copy()
            )
            self._copies[id(value)] = value, saved
        return self._copies[id(value)][1]


class _OldValues(Deserializer):
    """A deserializer that returns the old values, as far as they are known."""

    def __init__(
        self,
        values: dict[str, object],
        callbacks: list[Callable[[], Any]],
        path: str = "",
    ) -> None:
        self._values = values
        self._path = path
        self._callbacks = callbacks

    def __getitem__(self, key: str) -> _OldValues:
        path = f"{self._path}{key.strip('/')}/"
        return _OldValues(self._values, self._callbacks, path)

    def on_failure(self, undo: Callable[[], object]) -> None:
        self._callbacks.append(undo)

    def __call__(self, key: str, value: Any) -> Any:
        past = self._values.get(self._path + key.lstrip("/"), value)
        if isinstance(value, numpy.ndarray) and isinstance(past, numpy.ndarray):
            if value.shape != past.shape:
                return past.copy()
            numpy.copyto(value, past)
            return value
        return copy.copy(past) if isinstance(past, numpy.ndarray) else past
