"""Elements added at indices."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.functions.array.cast import cast
from renga.functions.array.get_item import PutItems, own_keys
from renga.functions.check import check_floats
from renga.variable import Variable, as_array


def scatter_add(a: Any, slices: Any, b: Any) -> Variable:
    """``a`` with ``b`` added to ``a[slices]``; elements picked twice get both.

    Raises:
        InvalidType: ``a`` or ``b`` is not of floats.
        ValueError: ``b`` has not the shape of ``a[slices]``.
        IndexError: there are no such elements.
    """
    check_floats("scatter_add", a)
    check_floats("scatter_add", b)
    b = cast(b, a.dtype)
    keys = own_keys(slices if isinstance(slices, tuple) else (slices,))
    picked = numpy.shape(as_array(a)[keys])
    if picked != b.shape:
        raise ValueError(f"scatter_add: expected b of {picked}, got {b.shape}")
    return _core.ops.add(a, PutItems(keys, a.shape).apply((b,))[0])
