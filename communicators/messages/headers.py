"""Headers: sent before the data of arrays whose shape the receiver does not know."""

from __future__ import annotations

import functools
import math
import struct

import numpy as np

from renga import _core
from renga.core.types import Array

_MAX_AXES = 16
# Kind of message, number of axes, dtype, shape.
_LAYOUT = struct.Struct(f"=4si24s{_MAX_AXES}q")
_BYTE = np.dtype(np.uint8)
# The core has elements of these dtypes.
_KNOWN = frozenset(map(np.dtype, "?bBhHiIlLqQefd"))

# Bytes of arrays from the core's allocator: NumPy's would return their memory to the
# system each time, and to touch fresh memory takes longer than to receive into it.
_LARGE = 1 << 16

ARRAY = b"arr"
TUPLE = b"tup"
OBJECT = b"obj"
DEVICE = b"gpu"  # an array that is sent from a GPU's memory

_NAMES = {ARRAY: "an array", TUPLE: "a tuple of arrays", OBJECT: "an object"}
_NAMES[DEVICE] = "an array of a GPU"
_ARRAYS = (ARRAY, DEVICE)


def header(name: str, x: Array, kind: bytes = ARRAY) -> Array:
    """The header of ``x``, as bytes that are read-only.

    Args:
        name: the method's, for errors.
        x: an array.
        kind: of the message.

    Raises:
        TypeError: if the elements are Python objects or have fields.
        ValueError: if there are too many axes.
    """
    return _packed(name, kind, x.dtype, x.shape)


# Kept: the layout takes longer to write and to read than to send.
@functools.lru_cache(maxsize=256)
def _packed(name: str, kind: bytes, dtype: np.dtype, shape: tuple[int, ...]) -> Array:
    text = dtype.str.encode()
    if dtype.hasobject or dtype.fields is not None or len(text) > 24:
        raise TypeError(
            f"{name}: expected an array of numbers, got dtype {dtype}; "
            "the methods that end in _obj take any object"
        )
    if len(shape) > _MAX_AXES:
        raise ValueError(f"{name}: expected at most {_MAX_AXES} axes, got {len(shape)}")
    extents = shape + (0,) * (_MAX_AXES - len(shape))
    return np.frombuffer(_LAYOUT.pack(kind, len(shape), text, *extents), _BYTE)


def empty_header() -> Array:
    """A buffer to receive a header into."""
    return np.zeros(_LAYOUT.size, _BYTE)


def has_arrived(received: Array) -> bool:
    """Whether a header has been received into the buffer."""
    return kind_of(received) in _NAMES


def is_header(x: Array) -> bool:
    """Whether a message is a header and not data."""
    return x.nbytes == _LAYOUT.size and has_arrived(x)


def empty_array(received: Array, kind: bytes = ARRAY) -> Array:
    """A new array of the shape and dtype in a header.

    Raises:
        TypeError: if the message is of another kind.
    """
    packed = received.tobytes()
    require_kind(packed[:3], kind)
    shape, dtype, size = _unpacked(packed)
    if size < _LARGE:
        return np.empty(shape, dtype)
    memory: Array = _core.empty(size, _BYTE)
    return memory.view(dtype).reshape(shape)


def describes(received: Array, x: Array) -> bool:
    """Whether a header is that of an array with the shape and dtype of ``x``."""
    return any(np.array_equal(received, header("recv", x, kind)) for kind in _ARRAYS)


def require_kind(got: bytes, kind: bytes) -> None:
    """Raises TypeError if the kinds differ."""
    if got != kind and not (got in _ARRAYS and kind in _ARRAYS):
        text = _NAMES.get(got, "something that is no message of a communicator")
        raise TypeError(f"recv: expected {_NAMES[kind]}, got {text}")


def describe(received: Array) -> str:
    """The contents of a header, as text."""
    kind = kind_of(received)
    if kind not in _ARRAYS:
        return _NAMES.get(kind, "something else")
    shape, dtype, _ = _unpacked(received.tobytes())
    return f"{dtype} {shape}"


@functools.lru_cache(maxsize=256)
def _unpacked(header: bytes) -> tuple[tuple[int, ...], np.dtype, int]:
    """The shape, the dtype and the number of bytes of the array."""
    _, ndim, name, *extents = _LAYOUT.unpack(header)
    shape, dtype = tuple(extents[:ndim]), np.dtype(name.rstrip(b"\0").decode())
    return shape, dtype, math.prod(shape) * dtype.itemsize


def kind_of(received: Array) -> bytes:
    """The kind of message in a header: ARRAY, DEVICE, TUPLE or OBJECT."""
    return received.tobytes()[:3]


def as_known(x: Array) -> Array:
    """``x``, or its bytes if the core lacks its dtype."""
    return x if x.dtype in _KNOWN else as_bytes(x)


def as_bytes(x: Array) -> Array:
    """The bytes of ``x``: a view if it is contiguous, a copy otherwise."""
    if x.nbytes == 0:
        return np.empty(0, _BYTE)  # strings may have elements of no bytes
    return x.ravel().view(_BYTE)
