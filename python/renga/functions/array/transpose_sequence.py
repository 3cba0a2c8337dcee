"""Sequences by time instead of by sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from renga import _core
from renga.functions.array.cast import cast
from renga.functions.array.separate import separate
from renga.utils.type_check import InvalidType
from renga.variable import Variable


def transpose_sequence(xs: Sequence[Any]) -> tuple[Variable, ...]:
    """For each time one array of what all sequences that are long enough hold then.

    Shapes:
        xs: [(T1, …), (T2, …), …] with T1 >= T2 >= …
        return: [(B1, …), (B2, …), …], T1 of them

    Raises:
        InvalidType: lengths increase, or shapes do not fit.
    """
    shapes = [x.shape for x in xs]
    if any(a[:1] < b[:1] or a[1:] != b[1:] for a, b in zip(shapes, shapes[1:])):
        raise InvalidType(
            f"transpose_sequence: expected lengths that do not increase, got {shapes}"
        )
    if not shapes:
        return ()
    steps: list[list[Variable]] = [[] for _ in range(shapes[0][0])]
    for x in xs:
        for step, element in zip(steps, separate(cast(x, xs[0].dtype))):
            step.append(element)
    return tuple(_core.ops.stack(step, 0) for step in steps)
