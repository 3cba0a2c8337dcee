"""Elements picked as NumPy does by ``x[slices]``, and added to those."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.core.function_node import FunctionNode
from renga.core.types import Array, ArrayLike, Grads, Indexes, Variables
from renga.core.variable import Variable, as_array, as_variable, holds_numbers
from renga.functions.array.cast import promoted
from renga.functions.array.picked_rows import PickedRows, indexed_axes, picked_rows
from renga.functions.check import check_arrays
from renga.functions.on_host import on_host
from renga.utils.type_check import InvalidType


def get_item(x: ArrayLike, slices: object) -> Variable:
    """``x[slices]``: integers, slices, None, Ellipsis, and arrays of indices or bools.

    As in Chainer, a list of anything but Python's integers is taken for a tuple.

    Raises:
        IndexError: there are no such elements.
    """
    check_arrays("get_item", x)
    keys = as_keys(slices)
    try:
        y = _core.basic_item(x, keys, x.shape)
        return _picked(x, keys) if y is None else y
    except InvalidType:
        if holds_numbers(x):
            raise
        items = numpy.asarray(as_array(x)[own_keys(keys)])
        return Variable(items, requires_grad=False)


def _picked(x: Any, keys: tuple[Any, ...]) -> Variable:
    single = taken_axis(x, keys)
    return _by_rules(x, keys) if single is None else _core.ops.take(x, *single)


def taken_axis(x: ArrayLike, keys: tuple[object, ...]) -> tuple[Any, int] | None:
    """The indices, and the axis of which they take elements; None for other keys."""
    while keys and type(keys[-1]) is slice and keys[-1] == _ALL:
        keys = keys[:-1]
    *before, last = keys or (_ALL,)
    if len(before) >= x.ndim or any(
        type(key) is not slice or key != _ALL for key in before
    ):
        return None
    if isinstance(last, (list, numpy.generic)):
        last = numpy.asarray(last)
    dtype = getattr(last, "dtype", None)
    if dtype is None or isinstance(last, Variable):
        return None
    if dtype.kind == "b" and type(last) is numpy.ndarray and last.ndim == 1:
        if len(last) != x.shape[len(before)]:
            return None
        last, dtype = last.nonzero()[0], numpy.dtype(int)
    # As int64, large unsigned integers would be negative.
    return (last, len(before)) if dtype.char in "bhilqBHI" else None


@on_host
def _by_rules(x: Any, keys: tuple[Any, ...]) -> Variable:
    own = own_keys(keys)
    picking = PickItems(keys)  # the caller's arrays, which programs recognize
    (y,) = picking.apply((x,))
    picking.keys = own
    return y


_ALL = slice(None)
_BASIC = (int, slice, type(None), type(Ellipsis))


def as_keys(slices: object) -> tuple[object, ...]:
    """An index as a tuple with a key for each axis."""
    if isinstance(slices, list) and not all(isinstance(key, int) for key in slices):
        return tuple(slices)
    return slices if isinstance(slices, tuple) else (slices,)


def own_keys(keys: tuple[object, ...]) -> tuple[Any, ...]:
    """The keys with copies of their arrays, so that backward uses the same indices."""
    if any(isinstance(key, (Variable, str, float)) for key in keys):
        raise IndexError(
            "get_item: expected integers, slices, None, Ellipsis or arrays of integers "
            f"or bools, got {keys}"
        )
    return tuple(key.copy() if isinstance(key, numpy.ndarray) else key for key in keys)


class PickItems(FunctionNode):
    """``x[keys]`` with arrays among the keys."""

    def __init__(self, keys: tuple[Any, ...], rows: PickedRows | None = None) -> None:
        self.keys = keys
        self._rows = rows

    @property
    def label(self) -> str:
        return "GetItem"

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        (x,) = inputs
        self._shape = x.shape
        self._rows = self._rows or picked_rows(x.shape, self.keys)
        y = None if self._rows is None else self._rows.gather(x)
        return (numpy.asarray(x[self.keys]) if y is None else y,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Variables) -> Grads:
        return PutItems(self.keys, self._shape, self._rows).apply(grad_outputs)


class PutItems(FunctionNode):
    """The transpose of PickItems: adds elements to an array of zeros at ``keys``."""

    def __init__(
        self,
        keys: tuple[Any, ...],
        shape: tuple[int, ...],
        rows: PickedRows | None = None,
    ) -> None:
        self.keys = keys
        self.shape = shape
        self._rows = rows

    @property
    def label(self) -> str:
        return "GetItemGrad"

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        (gy,) = inputs
        self._rows = self._rows or picked_rows(self.shape, self.keys)
        if self._rows is not None and gy.shape == self._rows.shape:
            return (self._rows.scatter_add(gy, self.shape),)
        gx = numpy.zeros(self.shape, gy.dtype)
        if _is_mask(self.keys):
            gx[self.keys] = gy
        else:
            numpy.add.at(gx, self.keys, gy)
        return (gx,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Variables) -> Grads:
        return PickItems(self.keys, self._rows).apply(grad_outputs)


def _is_mask(keys: tuple[Any, ...]) -> bool:
    """Whether the only array is of bools, which pick no element twice."""
    arrays = [key for key in keys if type(key) not in _BASIC]
    return len(arrays) == 1 and numpy.asarray(arrays[0]).dtype.kind == "b"


_core.set_picking(get_item)


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
        return _added_by_rules(a, keys, b)
    indices, axis = single
    picked = (*a.shape[:axis], *indices.shape, *a.shape[axis + 1 :])
    _check_picked(picked, b)
    wide, terms = promoted(a, b)
    return _core.ops.cast(_core.ops.index_add(wide, indices, terms, axis), a.dtype)


def _check_picked(picked: tuple[int, ...], b: Variable) -> None:
    if picked != b.shape:
        raise ValueError(f"scatter_add: expected b of {picked}, got {b.shape}")


@on_host
def _added_by_rules(a: Variable, keys: tuple[Any, ...], b: Variable) -> Variable:
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
