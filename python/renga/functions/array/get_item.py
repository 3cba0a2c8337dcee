"""Elements picked as NumPy does by ``x[slices]``."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.core.function_node import FunctionNode
from renga.core.variable import Variable, as_array, holds_numbers
from renga.functions.array.picked_rows import PickedRows, picked_rows
from renga.functions.check import check_arrays
from renga.functions.on_host import on_host
from renga.utils.type_check import InvalidType


def get_item(x: Any, slices: Any) -> Variable:
    """``x[slices]``: integers, slices, None, Ellipsis, and arrays of indices or bools.

    As in Chainer, a list of anything but Python's integers is taken for a tuple.

    Raises:
        IndexError: there are no such elements.
    """
    check_arrays("get_item", x)
    keys = as_keys(slices)
    try:
        for key in keys:
            if type(key) not in _BASIC:
                return _picked(x, keys)
        return _basic(x, keys)
    except InvalidType:
        if holds_numbers(x):
            raise
        y = numpy.asarray(as_array(x)[own_keys(keys)])
        return Variable(y, requires_grad=False)


@on_host
def _picked(x: Any, keys: tuple[Any, ...]) -> Variable:
    own = own_keys(keys)
    picking = PickItems(keys)  # the caller's arrays, which programs recognize
    (y,) = picking.apply((x,))
    picking.keys = own
    return y


_BASIC = (int, slice, type(None), type(Ellipsis))


def _basic(x: Any, keys: tuple[Any, ...]) -> Variable:
    """``x[keys]`` as a view, without arrays among the keys."""
    extents = x.shape
    ndim = len(extents)
    ranges: list[tuple[int, int, int]] = []
    shape: list[int] = []
    for key in keys:
        axis = len(ranges)
        if key is None:
            shape.append(1)
            continue
        if key is Ellipsis and keys.count(Ellipsis) == 1:
            # The axes that no other key indexes; -1 is for the ellipsis itself.
            indexed = sum(k is not None for k in keys) - 1
            kept = extents[axis : axis + ndim - indexed]
            ranges += [(0, n, 1) for n in kept]
            shape += kept
            continue
        if axis == ndim or key is Ellipsis:
            raise IndexError(
                f"get_item: expected at most {ndim} indices and one ..., got {keys}"
            )
        n = extents[axis]
        if type(key) is slice:
            start, stop, step = key.indices(n)
            length = len(range(start, stop, step))
            # An unused step may be too large for the core.
            ranges.append((start, length, step if length > 1 else 1))
            shape.append(length)
        elif -n <= key < n:
            ranges.append((key % n, 1, 1))
        else:
            raise IndexError(
                f"get_item: expected an index of axis {axis} of {extents}, got {key}"
            )
    kept = extents[len(ranges) :]
    ranges += [(0, n, 1) for n in kept]
    shape += kept
    y = _core.ops.slice(x, ranges)
    # Integers and None change the axes.
    return y if shape == [n for _, n, _ in ranges] else _core.ops.reshape(y, shape)


def as_keys(slices: Any) -> tuple[Any, ...]:
    """An index as a tuple with a key for each axis."""
    if isinstance(slices, list) and not all(isinstance(key, int) for key in slices):
        return tuple(slices)
    return slices if isinstance(slices, tuple) else (slices,)


def own_keys(keys: tuple[Any, ...]) -> tuple[Any, ...]:
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

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        (x,) = inputs
        self._shape = x.shape
        self._rows = self._rows or picked_rows(x.shape, self.keys)
        y = None if self._rows is None else self._rows.gather(x)
        return (numpy.asarray(x[self.keys]) if y is None else y,)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
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

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
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

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        return PickItems(self.keys, self._rows).apply(grad_outputs)


def _is_mask(keys: tuple[Any, ...]) -> bool:
    """Whether the only array is of bools, which pick no element twice."""
    arrays = [key for key in keys if type(key) not in _BASIC]
    return len(arrays) == 1 and numpy.asarray(arrays[0]).dtype.kind == "b"


def _index(x: Any, slices: Any) -> Variable:
    return get_item(x, slices)


setattr(_core.Variable, "__getitem__", _index)  # noqa: B010
