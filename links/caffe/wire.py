"""Messages in Protocol Buffers' wire format, read by tables of their fields."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_FLOATS = {"float": "<f4", "double": "<f8"}


class Field(NamedTuple):
    """A field of a message: its number, its type, its default value.

    ``kind`` is int, bool, str, ``"float"``, ``"double"`` or the table of a message;
    ``repeated`` fields are lists, those of floats arrays.
    """

    number: int
    kind: Any = int
    default: Any = None
    repeated: bool = False


class ProtobufMessage:
    """The values of a message's fields, as attributes."""

    def __init__(self, table: dict[str, Field], data: memoryview) -> None:
        found: dict[int, list[tuple[int, Any]]] = {}
        for number, wire_type, value in _fields(data):
            found.setdefault(number, []).append((wire_type, value))
        self.present = {n for n, field in table.items() if field.number in found}
        for name, field in table.items():
            setattr(self, name, _value(field, found.get(field.number, [])))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no field {name}")


def _fields(data: memoryview) -> Iterator[tuple[int, int, Any]]:
    """Number, wire type and value of every field; ValueError if it is no message."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        wire_type = key & 7
        if wire_type == _VARINT:
            value, position = _varint(data, position)
            yield key >> 3, wire_type, value
            continue
        if wire_type == _BYTES:
            size, position = _varint(data, position)
        elif wire_type in (_FOUR_BYTES, _EIGHT_BYTES):
            size = 4 if wire_type == _FOUR_BYTES else 8
        else:
            raise ValueError(f"wire type {wire_type}")
        if position + size > len(data):
            raise ValueError(f"a message that ends before a field of {size} bytes")
        yield key >> 3, wire_type, data[position : position + size]
        position += size


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise ValueError("a message that ends within a number")
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position += 1
        shift += 7
        if byte < 0x80:
            return value, position


def _value(field: Field, found: list[tuple[int, Any]]) -> Any:
    if isinstance(field.kind, str):
        return _floats(field, found)
    values = [
        v for wire_type, value in found for v in _scalars(field, wire_type, value)
    ]
    if field.repeated:
        return values
    if values:
        return values[-1]
    is_message = isinstance(field.kind, dict)
    return ProtobufMessage(field.kind, memoryview(b"")) if is_message else field.default


def _floats(field: Field, found: list[tuple[int, Any]]) -> Any:
    dtype = numpy.dtype(_FLOATS[field.kind])
    single = _FOUR_BYTES if dtype.itemsize == 4 else _EIGHT_BYTES
    for wire_type, value in found:
        if wire_type not in (single, _BYTES) or len(value) % dtype.itemsize:
            raise ValueError(
                f"numbers of wire type {wire_type} in field {field.number}"
            )
    # Packed or not, the bytes are the same.
    array = numpy.frombuffer(b"".join(v for _, v in found), dtype)
    if field.repeated:
        return array
    return float(array[-1]) if len(array) else field.default


def _scalars(field: Field, wire_type: int, value: Any) -> Iterator[Any]:
    in_bytes = isinstance(field.kind, dict) or field.kind is str
    if wire_type != _BYTES and (in_bytes or wire_type != _VARINT):
        raise ValueError(f"wire type {wire_type} in field {field.number}")
    if isinstance(field.kind, dict):
        yield ProtobufMessage(field.kind, value)
    elif field.kind is str:
        yield bytes(value).decode("utf-8", "replace")
    elif wire_type == _VARINT:
        yield field.kind(_signed(value))
    else:  # packed
        position = 0
        while position < len(value):
            number, position = _varint(value, position)
            yield field.kind(_signed(number))


def _signed(number: int) -> int:
    return struct.unpack("<q", struct.pack("<Q", number & (1 << 64) - 1))[0]
