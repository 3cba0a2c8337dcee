"""Checks of the arguments of functions."""

from __future__ import annotations

import operator
from typing import SupportsIndex

import numpy

from renga import _core
from renga.core.types import Array, ArrayLike, Operand
from renga.core.variable import as_array
from renga.utils.type_check import IndexOutOfRange, InvalidType


def check_arrays(name: str, *xs: Operand | None) -> None:
    """Raises TypeError unless all are Variables or arrays."""
    for x in xs:
        if hasattr(x, "dtype"):
            continue
        types = " and ".join(type(each).__name__ for each in xs)
        raise TypeError(f"{name}: expected arrays, got {types}")


def check_floats(name: str, *xs: ArrayLike, called: str = "floats") -> None:
    """Raises InvalidType unless all are floats of one dtype, in any byte order.

    Raises:
        TypeError: one is not an array.
    """
    if _core.are_floats_of_one_dtype(*xs):  # the common case, in one call
        return
    check_arrays(name, *xs)
    dtypes = [x.dtype for x in xs]
    # The character of a dtype does not depend on its byte order.
    first = dtypes[0]
    if first.kind != "f" or any(dtype.char != first.char for dtype in dtypes):
        listed = " and ".join(map(str, dtypes))
        raise InvalidType(f"{name}: expected {called} of one float dtype, got {listed}")


def array_of(name: str, what: str, x: ArrayLike) -> Array:
    """The array of a Variable, or the array itself.

    Raises:
        TypeError: ``x`` is neither, such as a list.
    """
    array = as_array(x)
    if not hasattr(array, "dtype"):
        raise TypeError(f"{name}: expected {what} as an array, got {type(x).__name__}")
    return array


def check_alike(name: str, *xs: ArrayLike) -> None:
    """Raises InvalidType unless all are floats of one dtype and one shape."""
    check_floats(name, *xs)
    if any(x.shape != xs[0].shape for x in xs):
        listed = " and ".join(str(x.shape) for x in xs)
        raise InvalidType(f"{name}: expected arrays of one shape, got {listed}")


def check_broadcast(name: str, *xs: ArrayLike) -> None:
    """Raises InvalidType unless all are floats of one dtype, and their shapes fit."""
    check_floats(name, *xs)
    shapes = [x.shape for x in xs]
    try:
        numpy.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(map(str, shapes))
        raise InvalidType(
            f"{name}: expected shapes that broadcast, got {listed}"
        ) from None


def check_axis(name: str, x: ArrayLike, axis: SupportsIndex) -> int:
    """The axis counted from the front.

    Raises:
        TypeError: the axis is not an integer, or ``x`` not an array.
        InvalidType: ``x`` has no such axis.
    """
    check_arrays(name, x)
    try:
        axis = operator.index(axis)
    except TypeError:
        raise TypeError(
            f"{name}: expected an integer as axis, got {type(axis).__name__}"
        ) from None
    if not -x.ndim <= axis < x.ndim:
        raise InvalidType(f"{name}: expected an axis of {x.shape}, got {axis}")
    return axis % x.ndim


def checked_indices(
    name: str, what: str, indices: ArrayLike, n: int, ignored: int | None = None
) -> numpy.ndarray:
    """A copy of ``indices`` as int64, each from 0 to ``n - 1`` or ``ignored``.

    Every array of indices is checked here before use: NumPy would count negative ones
    from the end, and sums of small integers overflow.

    Raises:
        InvalidType: they are not integers.
        IndexOutOfRange: one is out of range; the message has the first of these.
    """
    indices = numpy.asarray(indices)
    if indices.dtype.kind not in "iu":
        raise InvalidType(f"{name}: expected integers for {what}, got {indices.dtype}")
    outside = (indices < 0) | (indices >= n)
    if ignored is not None:
        outside &= indices != ignored
    if outside.any():
        raise IndexOutOfRange(
            f"{name}: expected {what} from 0 to {n - 1}, got {indices[outside][0]}"
        )
    return indices.astype(numpy.int64)


def check_written(name: str, what: str, array: ArrayLike) -> None:
    """Raises ValueError unless results can be written into ``array``.

    Raises:
        TypeError: it is not an array.
    """
    array_of(name, what, array)
    if isinstance(array, numpy.ndarray):
        _core.require_writable(array, f"{name}: {what}")


def check_labels_shape(name: str, y: ArrayLike, t: ArrayLike) -> None:
    """Raises InvalidType unless ``t`` has the shape of ``y`` without axis 1.

    Axes of one element at the end of ``y`` may be missing in ``t``.
    """
    n = t.ndim + 1
    fits = y.ndim >= max(n, 2) and t.ndim >= 1
    fits = fits and t.shape == y.shape[:1] + y.shape[2:n]
    fits = fits and all(length == 1 for length in y.shape[n:])
    check_shape(name, fits, "(N, C, …) and (N, …)", y, t)


def check_shape(name: str, condition: bool, expected: str, *xs: ArrayLike) -> None:
    """Raises InvalidType with the shapes of ``xs`` unless ``condition``."""
    if not condition:
        listed = " and ".join(str(x.shape) for x in xs)
        raise InvalidType(f"{name}: expected {expected}, got {listed}")


def check_axes(name: str, x: ArrayLike, n: int) -> None:
    """Raises ValueError unless ``x`` has ``n`` axes after its first two.

    Raises:
        TypeError: ``x`` is not an array.
    """
    check_arrays(name, x)
    if x.ndim != n + 2:
        raise ValueError(f"{name}: expected x with {n + 2} axes, got {x.shape}")
