"""Sequences by time instead of by sample."""

from __future__ import annotations

from collections.abc import Sequence

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable


def transpose_sequence(xs: Sequence[ArrayLike]) -> tuple[Variable, ...]:
    """One array per time step, of the elements of all sequences that are long enough.

    Shapes:
        xs: [(T1, …), (T2, …), …] with T1 >= T2 >= …
        return: [(B1, …), (B2, …), …], T1 of them

    Raises:
        InvalidType: lengths increase, or shapes do not fit.
    """
    return tuple(_core.ops.transpose_sequence(list(xs)))
