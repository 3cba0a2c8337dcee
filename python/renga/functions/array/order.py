"""Elements and axes in another order."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.core.configuration import config
from renga.core.function_node import FunctionNode
from renga.core.types import Array, ArrayLike, Extents
from renga.core.variable import Variable, as_variable
from renga.functions.array.get_item import get_item
from renga.functions.check import (
    array_of,
    check_arrays,
    check_axis,
    check_shape,
    checked_indices,
)
from renga.functions.on_host import on_host
from renga.utils.extents import check_integer
from renga.utils.type_check import InvalidType


def moveaxis(x: ArrayLike, source: Extents, destination: Extents) -> Variable:
    """``x`` with the axes ``source`` at ``destination``, the others in their order.

    Raises:
        InvalidType: there are no such axes.
        ValueError: an axis is named twice, or there are not as many destinations as
            sources.
        TypeError: they are neither integers nor tuples of them.
    """
    source = _axes(x, source)
    destination = _axes(x, destination)
    if len(source) != len(destination):
        raise ValueError(
            f"moveaxis: expected as many destinations as sources, got {source} and "
            f"{destination}"
        )
    if len(set(source)) < len(source) or len(set(destination)) < len(destination):
        raise ValueError(
            f"moveaxis: expected each axis once, got {source} and {destination}"
        )
    order = [axis for axis in range(x.ndim) if axis not in source]
    for position, axis in sorted(zip(destination, source)):
        order.insert(position, axis)
    return _core.ops.transpose(x, order)


def _axes(x: Any, axes: Any) -> list[int]:
    axes = axes if isinstance(axes, (tuple, list)) else (axes,)
    return [check_axis("moveaxis", x, axis) for axis in axes]


def rollaxis(x: ArrayLike, axis: int, start: int = 0) -> Variable:
    """``x`` with one axis moved before the axis ``start``.

    Raises:
        TypeError: axis or start is not an integer.
        InvalidType: there is no such axis or position.
    """
    axis = check_axis("rollaxis", x, axis)
    start = check_integer("rollaxis", "start", start)
    if not -x.ndim <= start <= x.ndim:
        raise InvalidType(f"rollaxis: expected a position in {x.shape}, got {start}")
    start = start + x.ndim if start < 0 else start
    order = [other for other in range(x.ndim) if other != axis]
    order.insert(start - (axis < start), axis)
    return _core.ops.transpose(x, order)


def flip(x: ArrayLike, axis: int) -> Variable:
    """``x`` backwards along an axis.

    Raises:
        TypeError: the axis is not an integer.
        InvalidType: there is no such axis.
    """
    axis = check_axis("flip", x, axis)
    backwards = slice(None, None, -1)
    return get_item(as_variable(x), (slice(None),) * axis + (backwards,))


def flipud(a: ArrayLike) -> Variable:
    """``a`` backwards along axis 0.

    Raises:
        InvalidType: there is no axis.
    """
    check_arrays("flipud", a)
    check_shape("flipud", a.ndim >= 1, "1 axis or more", a)
    return flip(a, 0)


def fliplr(a: ArrayLike) -> Variable:
    """``a`` backwards along axis 1.

    Raises:
        InvalidType: there are less than two axes.
    """
    check_arrays("fliplr", a)
    check_shape("fliplr", a.ndim >= 2, "2 axes or more", a)
    return flip(a, 1)


@on_host
def permutate(
    x: ArrayLike, indices: ArrayLike, axis: int = 0, inv: bool = False
) -> Variable:
    """``x[indices]`` along an axis; with ``inv`` the inverse permutation.

    Raises:
        ValueError: indices are not an array of integers of one axis or, with ``inv``
            and in debug mode, one comes twice.
        InvalidType: there is no such axis.
        IndexError: there are no such elements; with ``inv``, of as many as there are
            indices.
    """
    indices = array_of("permutate", "indices", indices)
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise ValueError(
            "permutate: expected indices as an array of integers of one axis, got "
            f"{indices.shape} {indices.dtype}"
        )
    axis = check_axis("permutate", x, axis)
    limit = indices.size if inv else x.shape[axis]
    checked = checked_indices("permutate", "indices", indices, limit)
    if inv or config.debug:
        if numpy.bincount(checked, minlength=1).max() > 1:
            raise ValueError(f"permutate: expected each index once, got {checked}")
    if inv:
        indices = InvertPermutation().apply((indices,))[0].array
    return get_item(as_variable(x), (slice(None),) * axis + (indices,))


class InvertPermutation(FunctionNode):
    """The positions of 0, 1, … in an array that has each of them once."""

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        return (numpy.argsort(inputs[0]),)
