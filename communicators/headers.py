"""Arrays for ranks that do not know their shape: a header goes before the data."""

from __future__ import annotations

import struct

import numpy as np

# What follows, number of axes, dtype, extents.
_LAYOUT = struct.Struct("=4si24s16q")

ARRAY = b"arr"
TUPLE = b"tup"
OBJECT = b"obj"

_NAMES = {ARRAY: "an array", TUPLE: "a tuple of arrays", OBJECT: "an object"}


def header(x: np.ndarray, kind: bytes = ARRAY) -> np.ndarray:
    """The header of ``x``, as bytes.

    Raises:
        TypeError: the elements are Python objects or have fields.
    """
    if x.dtype.hasobject or x.dtype.fields is not None:
        raise TypeError(
            f"communicator: expected an array of numbers, got dtype {x.dtype}; "
            "the methods that end in _obj take any object"
        )
    extents = x.shape + (0,) * (16 - x.ndim)
    packed = _LAYOUT.pack(kind, x.ndim, x.dtype.str.encode(), *extents)
    return np.frombuffer(packed, np.uint8)


def blank_header() -> np.ndarray:
    """Room for a header to receive."""
    return np.empty(_LAYOUT.size, np.uint8)


def blank_array(received: np.ndarray, kind: bytes = ARRAY) -> np.ndarray:
    """Room for the array that a header announces.

    Raises:
        TypeError: something else than ``kind`` was sent.
    """
    got, ndim, dtype, *extents = _LAYOUT.unpack(received.tobytes())
    got = got.rstrip(b"\0")
    if got != kind:
        raise TypeError(f"recv: expected {_NAMES[kind]}, got {_NAMES[got]}")
    return np.empty(extents[:ndim], np.dtype(dtype.rstrip(b"\0").decode()))


def kind_of(received: np.ndarray) -> bytes:
    """What a header announces: ARRAY, TUPLE or OBJECT."""
    return received[:3].tobytes()


def raw(x: np.ndarray) -> np.ndarray:
    """The bytes of ``x``: a view where it is contiguous, a copy otherwise."""
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)
