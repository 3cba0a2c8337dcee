"""Conversion of values to arrays that a file can hold, and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from renga.backends import cuda


class Entry(NamedTuple):
    """An array in a file, of which only shape and dtype have been read.

    None has no shape. ``read`` raises FileFormatError where the array is damaged.
    """

    shape: tuple[int, ...] | None
    dtype: Any
    read: Callable[[], numpy.ndarray]


def as_stored(key: str, value: object) -> numpy.ndarray:
    """``value`` as an array in main memory, and None as an array of None.

    Raises:
        TypeError: the value is neither numbers, text nor None.
    """
    if isinstance(value, cuda.ndarray):
        value = cuda.to_cpu(value)
    array = numpy.asarray(value)
    if array.dtype.hasobject and not is_none(array):
        raise TypeError(
            f"serializer: {key!r}: expected numbers, text or None, got {value!r}"
        )
    return array


def is_none(array: numpy.ndarray) -> bool:
    """Whether ``array`` encodes None."""
    return array.dtype.hasobject and array.ndim == 0 and array.item() is None


def entry_of(array: object) -> Entry:
    """The entry of an array in memory."""
    if isinstance(array, Entry):
        return array
    array = numpy.asarray(array)
    return Entry(None if is_none(array) else array.shape, array.dtype, lambda: array)


def restore(name: str, entry: Entry, value: object) -> Any:
    """Fill the array ``value`` from ``entry``, or convert to the type of ``value``.

    An array that does not fit is not read. ``name`` is for messages.

    Raises:
        ValueError: shapes differ, ``value`` cannot be written, or a number does not fit
            its dtype.
        TypeError: dtypes are of different kinds.
    """
    if entry.shape is None:
        return None
    if value is None:
        # A copy: it owns its memory and can be written.
        stored = entry.read()
        return numpy.array(stored, stored.dtype.newbyteorder("="), order="C")
    if isinstance(value, (numpy.ndarray, cuda.ndarray)):
        _fill(name, entry, value)
        return value
    return _convert(name, entry, type(value))


def _fill(name: str, entry: Entry, value: Any) -> None:
    if entry.shape != value.shape:
        raise ValueError(
            f"serializer: {name}: expected an array of shape {value.shape}, "
            f"got {entry.shape}"
        )
    text = [dtype.kind in "SU" for dtype in (entry.dtype, value.dtype)]
    if text[0] != text[1] or not numpy.can_cast(entry.dtype, value.dtype, "same_kind"):
        raise TypeError(
            f"serializer: {name}: expected an array that fits {value.dtype}, "
            f"got one of {entry.dtype}"
        )
    if isinstance(value, cuda.ndarray):
        value.set(_in_range(name, entry.read(), value.dtype).astype(value.dtype))
        return
    if not value.flags.writeable:
        raise ValueError(f"serializer: {name}: expected an array that can be written")
    if _may_overlap(value):
        raise ValueError(
            f"serializer: {name}: expected an array whose elements do not overlap, "
            f"got strides {value.strides} for shape {value.shape}"
        )
    numpy.copyto(value, _in_range(name, entry.read(), value.dtype))


def _may_overlap(array: numpy.ndarray) -> bool:
    """Whether elements may share memory, which only unusual strides cause."""
    if array.size <= 1:
        return False
    reach = array.itemsize  # of all axes with smaller strides
    for stride, length in sorted(
        (abs(s), n) for s, n in zip(array.strides, array.shape)
    ):
        if length > 1:
            if stride < reach:
                return True
            reach += stride * (length - 1)
    return False


def _in_range(name: str, stored: numpy.ndarray, dtype: Any) -> numpy.ndarray:
    """``stored``, unless ``dtype`` is of integers and too small for one in it."""
    integers = stored.dtype.kind in "iu" and numpy.dtype(dtype).kind in "iu"
    if not integers or not stored.size or numpy.can_cast(stored.dtype, dtype):
        return stored
    limits = numpy.iinfo(dtype)
    least, most = int(stored.min()), int(stored.max())
    if least < limits.min or most > limits.max:
        raise ValueError(
            f"serializer: {name}: expected integers that fit {numpy.dtype(dtype)}, "
            f"got some from {least} to {most}"
        )
    return stored


def _convert(name: str, entry: Entry, kind: type) -> Any:
    dtype = numpy.dtype(entry.dtype)
    scalar = issubclass(kind, (int, float, complex, str, bytes, numpy.generic))
    if scalar and math.prod(entry.shape or ()) != 1:
        raise ValueError(
            f"serializer: {name}: expected one value, got shape {entry.shape}"
        )
    if not _fits(dtype, kind):
        raise TypeError(
            f"serializer: {name}: expected a value that fits {kind}, "
            f"got an array of {dtype}"
        )
    stored = entry.read()
    return kind(stored.reshape(())[()] if scalar else stored)


def _fits(dtype: numpy.dtype, kind: type) -> bool:
    if issubclass(kind, str):
        return dtype.kind == "U"
    if issubclass(kind, bytes):
        return dtype.kind == "S"
    if not issubclass(dtype.type, numpy.number):
        return True
    if kind is int and dtype.kind in "iu":
        return True
    return numpy.can_cast(dtype, kind, "safe")
