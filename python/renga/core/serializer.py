"""The interface of serializers: one ``serialize`` method both saves and loads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar, overload

_Value = TypeVar("_Value")


class AbstractSerializer:
    """A position in a tree of named values, called once for every value."""

    @overload
    def __call__(self, key: str, value: None) -> Any: ...
    @overload
    def __call__(self, key: str, value: _Value) -> _Value: ...
    def __call__(self, key: str, value: object) -> object:
        """Save ``value`` under ``key``, or return what is stored there.

        When loading, an array is filled in place; for anything else the stored value
        is returned in the type of ``value``, or as an array if ``value`` is None.
        """
        raise NotImplementedError

    def __getitem__(self, key: str) -> AbstractSerializer:
        """The serializer of the branch called ``key``."""
        raise NotImplementedError


class Serializable(Protocol):
    """What is saved and loaded by its ``serialize`` method."""

    def serialize(self, serializer: AbstractSerializer, /) -> object: ...


def _require_serializable(obj: object) -> None:
    if not hasattr(obj, "serialize"):
        raise TypeError(
            "serializer: expected an object with a serialize method, such as a link, "
            f"got {type(obj).__name__}"
        )


def serialize_part(part: object, serializer: AbstractSerializer, key: str) -> None:
    """Saves or loads an object under ``key``, if it has a ``serialize`` method."""
    if hasattr(part, "serialize"):
        part.serialize(serializer[key])


class Serializer(AbstractSerializer):
    """A serializer that saves."""

    def save(self, obj: Serializable | Mapping[str, object]) -> None:
        """Save all that ``obj.serialize`` passes to this, or a mapping's values."""
        if isinstance(obj, Mapping):
            for key, value in obj.items():
                self(key, value)
            return
        _require_serializable(obj)
        obj.serialize(self)


class Deserializer(AbstractSerializer):
    """A serializer that loads."""

    loaded_object: Any = None  # the whole of what is loaded, where it is known

    def load(self, obj: Serializable) -> None:
        """Load every value that ``obj.serialize`` requests."""
        _require_serializable(obj)
        obj.serialize(self)

    def on_failure(self, undo: Callable[[], object]) -> None:
        """Have ``undo`` called if loading fails.

        The values passed to a deserializer are restored without this. It is for objects
        that request other names depending on what they have read from the file.
        """
