"""Arrays for messages, also of bfloat16, which NumPy lacks: the bits of its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from renga import _core
from renga.communicators.arrays import Array
from renga.core.types import ArrayLike
from renga.core.variable import as_array


def sent_array(x: ArrayLike) -> Array:
    """The array of ``x``, or a copy of the bits of its bfloat16 numbers."""
    array: Array = as_array(x)
    if not _is_bfloat16(x):
        return array
    bits = np.ascontiguousarray(array).view(np.uint32)
    return (bits >> 16).astype(np.uint16)


def received_array(x: ArrayLike) -> Array:
    """The memory of ``x``, which is contiguous, as an array that can be written to."""
    return np.asarray(_Bits(x)) if _is_bfloat16(x) else as_array(x)


def _is_bfloat16(x: Any) -> bool:
    return isinstance(x, _core.Variable) and _core.dtype_name(x) == "bfloat16"


class _Bits:
    """Tells NumPy where the bits of a Variable are, and keeps it alive."""

    def __init__(self, x: ArrayLike) -> None:
        self._x = x
        self.__array_interface__ = {
            "version": 3,
            "shape": x.shape,
            "typestr": np.dtype(np.uint16).str,
            "data": (_core.addresses([x])[0], False),
        }
