"""Sequences of different lengths, padded, and by time instead of by sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_array
from renga.functions.array.pad import pad
from renga.functions.check import check_arrays
from renga.utils.extents import check_integer, check_memory, check_real
from renga.utils.type_check import InvalidType


def pad_sequence(
    xs: Sequence[ArrayLike], length: int | None = None, padding: float = 0
) -> Variable:
    """Sequences padded at their ends to one length, the longest's if None.

    Shapes:
        xs: [(T1, …), (T2, …), …]
        return: (B, length, …)

    Raises:
        TypeError: ``length`` is not an integer, or ``padding`` not a number.
        InvalidType: there are none, one is too long, or shapes do not fit.
    """
    check_arrays("pad_sequence", *xs)
    shapes = [x.shape for x in xs]
    if not shapes or any(not s or s[1:] != shapes[0][1:] for s in shapes):
        raise InvalidType(
            f"pad_sequence: expected sequences of like elements, got {shapes}"
        )
    longest = max(s[0] for s in shapes)
    if length is None:
        length = longest
    length = check_integer("pad_sequence", "length", length)
    if longest > length:
        raise InvalidType(f"pad_sequence: expected up to {length} steps, got {longest}")
    if any(x.dtype.kind not in "iuf" for x in xs):
        return _without_gradient(xs, length, padding)
    check_memory("pad_sequence", (len(xs), length, *shapes[0][1:]), xs[0].dtype)

    def padded(x: ArrayLike) -> Variable:
        rest = [0] * (x.ndim - 1)
        after = [length - x.shape[0], *rest]
        if x.dtype.kind != "f":
            widths = list(zip([0, *rest], after))
            return pad(x, widths, "constant", constant_values=padding)
        value = check_real("pad_sequence", "padding", padding)
        return _core.ops.pad(x, [0, *rest], after, value)

    return _core.ops.stack([padded(x) for x in xs], 0)


def _without_gradient(xs: Sequence[Any], length: int, padding: Any) -> Variable:
    dtypes = [x.dtype for x in xs]
    if any(dtype != dtypes[0] for dtype in dtypes):
        raise InvalidType(f"pad_sequence: expected one dtype, got {dtypes}")
    y = numpy.full((len(xs), length, *xs[0].shape[1:]), padding, xs[0].dtype)
    for row, x in zip(y, xs):
        row[: len(x)] = as_array(x)
    return Variable(y, requires_grad=False)


def transpose_sequence(xs: Sequence[ArrayLike]) -> tuple[Variable, ...]:
    """One array per time step, of the elements of all sequences that are long enough.

    Shapes:
        xs: [(T1, …), (T2, …), …] with T1 >= T2 >= …
        return: [(B1, …), (B2, …), …], T1 of them

    Raises:
        InvalidType: lengths increase, or shapes do not fit.
    """
    return tuple(_core.ops.transpose_sequence(list(xs)))
