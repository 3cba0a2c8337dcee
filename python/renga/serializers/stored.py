"""Values as arrays that a file can hold, and back."""

from __future__ import annotations

from typing import Any

import numpy

from renga.backends import cuda


def as_stored(key: str, value: Any) -> numpy.ndarray:
    """``value`` as an array in main memory, and None as an array of None.

    Raises: TypeError for what is neither numbers, text nor None.
    """
    if isinstance(value, cuda.ndarray):
        value = value.get()
    array = numpy.asarray(value)
    if array.dtype.hasobject and not is_none(array):
        raise TypeError(
            f"serializer: {key!r}: expected numbers, text or None, got {value!r}"
        )
    return array


def is_none(array: numpy.ndarray) -> bool:
    """Whether ``array`` stands for None."""
    return array.dtype.hasobject and array.ndim == 0 and array.item() is None


def restore(key: str, stored: numpy.ndarray, value: Any) -> Any:
    """Fill the array ``value`` from ``stored``, or convert to the type of ``value``.

    Raises: ValueError where shapes differ; TypeError where a number would be lost.
    """
    if value is None:
        return stored
    if isinstance(value, (numpy.ndarray, cuda.ndarray)):
        if stored.shape != value.shape:
            raise ValueError(
                f"serializer: {key!r}: expected an array of shape {value.shape}, "
                f"got {stored.shape}"
            )
        if isinstance(value, cuda.ndarray):
            value.set(stored.astype(value.dtype))
        else:
            numpy.copyto(value, stored)
        return value
    return _convert(key, stored, type(value))


def _convert(key: str, stored: numpy.ndarray, kind: type) -> Any:
    number = issubclass(stored.dtype.type, numpy.number)
    integers = kind is int and issubclass(stored.dtype.type, numpy.integer)
    if number and not integers and not numpy.can_cast(stored.dtype, kind, "safe"):
        raise TypeError(
            f"serializer: {key!r}: expected a value that fits {kind}, "
            f"got an array of {stored.dtype}"
        )
    return kind(stored[()])
