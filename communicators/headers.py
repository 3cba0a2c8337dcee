"""Arrays for ranks that do not know their shape: a header goes before the data."""

from __future__ import annotations

import struct

import numpy as np

_MOST_AXES = 16
# What follows, number of axes, dtype, extents.
_LAYOUT = struct.Struct(f"=4si24s{_MOST_AXES}q")

ARRAY = b"arr"
TUPLE = b"tup"
OBJECT = b"obj"

_NAMES = {ARRAY: "an array", TUPLE: "a tuple of arrays", OBJECT: "an object"}


def header(x: np.ndarray, kind: bytes = ARRAY) -> np.ndarray:
    """The header of ``x``, as bytes.

    Raises:
        TypeError: the elements are Python objects or have fields.
        ValueError: there are too many axes.
    """
    dtype = x.dtype.str.encode()
    if x.dtype.hasobject or x.dtype.fields is not None or len(dtype) > 24:
        raise TypeError(
            f"communicator: expected an array of numbers, got dtype {x.dtype}; "
            "the methods that end in _obj take any object"
        )
    if x.ndim > _MOST_AXES:
        raise ValueError(
            f"communicator: expected at most {_MOST_AXES} axes, got {x.ndim}"
        )
    extents = x.shape + (0,) * (_MOST_AXES - x.ndim)
    packed = _LAYOUT.pack(kind, x.ndim, dtype, *extents)
    return np.frombuffer(packed, np.uint8)


def blank_header() -> np.ndarray:
    """Room for a header to receive."""
    return np.zeros(_LAYOUT.size, np.uint8)


def has_come(received: np.ndarray) -> bool:
    """Whether a header is in its room."""
    return kind_of(received) in _NAMES


def blank_array(received: np.ndarray, kind: bytes = ARRAY) -> np.ndarray:
    """Room for the array that a header announces.

    Raises:
        TypeError: something else than ``kind`` was sent.
    """
    require_kind(kind_of(received), kind)
    return np.empty(*_form(received))


def announces(received: np.ndarray, x: np.ndarray) -> bool:
    """Whether a header is that of an array like ``x``."""
    return bool(np.array_equal(received, header(x)))


def require_kind(got: bytes, kind: bytes) -> None:
    """Raises TypeError where something else than ``kind`` was sent."""
    if got != kind:
        what = _NAMES.get(got, "something that is no message of a communicator")
        raise TypeError(f"recv: expected {_NAMES[kind]}, got {what}")


def describe(received: np.ndarray) -> str:
    """What a header announces, in words."""
    kind = kind_of(received)
    if kind != ARRAY:
        return _NAMES.get(kind, "something else")
    shape, dtype = _form(received)
    return f"{dtype} {shape}"


def _form(received: np.ndarray) -> tuple[tuple[int, ...], np.dtype]:
    _, ndim, dtype, *extents = _LAYOUT.unpack(received.tobytes())
    return tuple(extents[:ndim]), np.dtype(dtype.rstrip(b"\0").decode())


def kind_of(received: np.ndarray) -> bytes:
    """What a header announces: ARRAY, TUPLE or OBJECT."""
    return received[:3].tobytes()


def raw(x: np.ndarray) -> np.ndarray:
    """The bytes of ``x``: a view where it is contiguous, a copy otherwise."""
    if x.nbytes == 0:
        return np.empty(0, np.uint8)  # texts may have elements of no bytes
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)
