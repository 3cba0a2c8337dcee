"""Products of arrays summed over pairs of axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy

from renga import _core
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable
from renga.functions.check import check_arrays
from renga.utils.extents import check_integer


def tensordot(
    a: ArrayLike, b: ArrayLike, axes: int | Sequence[Extents] = 2
) -> Variable:
    """``a`` times ``b`` summed over axes, as ``numpy.tensordot``.

    ``axes`` is how many of the last axes of ``a`` and first of ``b``, or a pair: the
    axes of ``a`` and those of ``b``, each a number or a sequence.

    Raises:
        ValueError: the axes do not match.
    """
    check_arrays("tensordot", a, b)
    a_sum, b_sum = _axes(axes, a.ndim, b.ndim)
    a_extents = [a.shape[i] for i in a_sum]
    b_extents = [b.shape[i] for i in b_sum]
    if a_extents != b_extents:
        raise ValueError(
            f"tensordot: expected axes of equal extents, got {a_extents} and "
            f"{b_extents} for {a.shape} and {b.shape}"
        )
    a_kept = [i for i in range(a.ndim) if i not in a_sum]
    b_kept = [i for i in range(b.ndim) if i not in b_sum]
    inner = math.prod(a_extents)
    ops = _core.ops
    a_shape, b_shape = [a.shape[i] for i in a_kept], [b.shape[i] for i in b_kept]
    a = ops.reshape(ops.transpose(a, a_kept + a_sum), (math.prod(a_shape), inner))
    b = ops.reshape(ops.transpose(b, b_sum + b_kept), (inner, math.prod(b_shape)))
    return ops.reshape(ops.matmul(a, b), a_shape + b_shape)


def _axes(
    axes: int | Sequence[Extents], a_ndim: int, b_ndim: int
) -> tuple[list[int], list[int]]:
    if isinstance(axes, numpy.ndarray):
        axes = axes.tolist()
    if not isinstance(axes, Sequence):
        axes = check_integer("tensordot", "axes", axes)
        if not 0 <= axes <= min(a_ndim, b_ndim):
            raise ValueError(
                f"tensordot: expected 0 to {min(a_ndim, b_ndim)} axes, got {axes}"
            )
        return list(range(a_ndim - axes, a_ndim)), list(range(axes))
    if isinstance(axes, str) or len(axes) != 2:
        raise ValueError(f"tensordot: expected a pair of axes, got {axes!r}")
    a_axes, b_axes = (list(x) if isinstance(x, Sequence) else [x] for x in axes)
    if len(a_axes) != len(b_axes):
        raise ValueError(f"tensordot: expected as many axes of a as of b, got {axes}")
    for name, chosen, ndim in (("a", a_axes, a_ndim), ("b", b_axes, b_ndim)):
        chosen[:] = [check_integer("tensordot", "axis", i) for i in chosen]
        if any(not -ndim <= i < ndim for i in chosen):
            raise IndexError(f"tensordot: expected axes of {name}, got {chosen}")
        if len({i % ndim for i in chosen}) < len(chosen):
            raise ValueError(f"tensordot: expected each axis once, got {chosen}")
    return [i % a_ndim for i in a_axes], [i % b_ndim for i in b_axes]
