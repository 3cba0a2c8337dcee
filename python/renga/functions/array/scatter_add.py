"""Elements added at indices."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_variable
from renga.functions.array.cast import promoted
from renga.functions.array.get_item import PutItems, as_keys, own_keys, taken_axis
from renga.functions.array.picked_rows import indexed_axes, picked_rows
from renga.functions.check import check_arrays
from renga.functions.on_host import on_host
from renga.utils.type_check import InvalidType


def scatter_add(a: ArrayLike, slices: object, b: ArrayLike) -> Variable:
    """``a`` with ``b`` added to ``a[slices]``; elements picked twice get both.

    The result has the dtype of ``a``.

    Raises:
        TypeError: ``a`` or ``b`` is not an array.
        ValueError: ``b`` has not the shape of ``a[slices]``.
        InvalidType: there are more indices than axes.
        IndexError: there are no such elements.
    """
    check_arrays("scatter_add", a, b)
    a, b = as_variable(a), as_variable(b)
    keys = as_keys(slices)
    if indexed_axes(keys) > a.ndim:
        raise InvalidType(f"scatter_add: expected {a.ndim} indices at most, got {keys}")
    single = taken_axis(a, keys)
    if single is None or a.dtype.kind != "f":
        return _by_rules(a, keys, b)
    indices, axis = single
    picked = (*a.shape[:axis], *indices.shape, *a.shape[axis + 1 :])
    _check_picked(picked, b)
    wide, terms = promoted(a, b)
    return _core.ops.cast(_core.ops.index_add(wide, indices, terms, axis), a.dtype)


def _check_picked(picked: tuple[int, ...], b: Variable) -> None:
    if picked != b.shape:
        raise ValueError(f"scatter_add: expected b of {picked}, got {b.shape}")


@on_host
def _by_rules(a: Variable, keys: tuple[Any, ...], b: Variable) -> Variable:
    keys = own_keys(keys)
    rows = picked_rows(a.shape, keys)
    picked = numpy.shape(a.array[keys]) if rows is None else rows.shape
    _check_picked(picked, b)
    # In the dtype of the sum: those of a narrower one could overflow.
    wide, terms = promoted(a, b)
    if rows is not None and rows.is_view:
        before, n, after = rows.table
        table = _core.ops.reshape(wide, (before, n, after))
        terms = _core.ops.reshape(terms, (before, rows.indices.size, after))
        y = _core.ops.index_add(table, rows.indices, terms, 1)
        return _core.ops.cast(_core.ops.reshape(y, a.shape), a.dtype)
    put = PutItems(keys, a.shape, rows).apply((terms,))[0]
    return _core.ops.cast(_core.ops.add(wide, put), a.dtype)
