"""Arrays joined along the second, the first or the third axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_arrays
from renga.utils.type_check import InvalidType


def hstack(xs: Sequence[ArrayLike]) -> Variable:
    """Arrays joined along axis 1; along axis 0 if they have no other.

    Raises:
        InvalidType: there are none, or shapes or dtypes do not fit.
    """
    axes = _common_axes("hstack", xs)
    return _core.ops.concat(_with_axes(axes, xs, (), 1), 0 if axes < 2 else 1)


def vstack(xs: Sequence[ArrayLike]) -> Variable:
    """Arrays joined along axis 0; those of one axis are rows.

    Raises:
        InvalidType: there are none, or shapes or dtypes do not fit.
    """
    axes = _common_axes("vstack", xs)
    return _core.ops.concat(_with_axes(axes, xs, (1,), 2), 0)


def dstack(xs: Sequence[ArrayLike]) -> Variable:
    """Arrays joined along axis 2; those of one axis are rows, rows are flat.

    Raises:
        InvalidType: there are none, or shapes or dtypes do not fit.
    """
    axes = _common_axes("dstack", xs)
    rows = _with_axes(axes, xs, (1,), 2)
    return _core.ops.concat(_with_axes(max(axes, 2), rows, (), 3), 2)


def _common_axes(name: str, xs: Sequence[Any]) -> int:
    check_arrays(name, *xs)
    axes = {x.ndim for x in xs}
    if len(axes) != 1:
        shapes = [x.shape for x in xs]
        raise InvalidType(f"{name}: expected arrays of as many axes, got {shapes}")
    return axes.pop()


def _with_axes(
    axes: int, xs: Sequence[Any], before: tuple[int, ...], n: int
) -> Sequence[Any]:
    """Each with ``n`` axes at least: ``before`` is put first if it has one less."""
    if axes >= n:
        return list(xs)

    def extended(x: ArrayLike) -> Variable:
        shape = (*before, *x.shape)
        return _core.ops.reshape(x, (*shape, *(1,) * (n - len(shape))))

    return [extended(x) for x in xs]
