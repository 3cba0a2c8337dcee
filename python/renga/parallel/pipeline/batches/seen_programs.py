"""The programs that a pipeline has seen, and the values that it has seen them with."""

from __future__ import annotations

import functools
import math
import numbers
import types
from collections.abc import Callable, Sequence
from typing import Any

from renga.parallel.pipeline.batches import micro_batches
from renga.parallel.pipeline.batches.reductions import Reductions
from renga.utils.containers import leaves_by_place

_PROGRAMS = 64  # that are remembered, the latest ones


class SeenPrograms:
    """By what defines a program, and the kinds of arrays among its arguments."""

    def __init__(self) -> None:
        self._programs: dict[Any, SeenProgram] = {}

    def of(self, program: Callable[..., object], inputs: Sequence[Any]) -> SeenProgram:
        """What is known of a program, which may be nothing yet."""
        meaning = _definition(program)
        key = (*map(id, meaning), micro_batches.kinds(inputs))
        if key not in self._programs:
            self._programs[key] = SeenProgram(meaning)
            if len(self._programs) > _PROGRAMS:
                del self._programs[next(iter(self._programs))]
        return self._programs[key]


class SeenProgram:
    """What is known of a program.

    Attributes:
        values: of arguments that it was seen with.
        reductions: how what it computes for micro-batches makes that for a batch.
    """

    def __init__(self, meaning: tuple[object, ...]) -> None:
        self._meaning = meaning  # kept, so that the ids of its parts stay their own
        self.values = SeenValues()
        self.reductions: Reductions | None = None

    def forget(self) -> None:
        """Makes it one that was not seen."""
        self.values, self.reductions = SeenValues(), None


class SeenValues:
    """The values of arguments that a program was seen with.

    A function of other ones may be divided in another way: the mean over a mask is one
    over the samples while the mask is full, or while no sequence is padded.
    """

    def __init__(self) -> None:
        self._ranges: dict[tuple[Any, ...], tuple[float, float]] = {}

    def take(self, inputs: Sequence[object]) -> bool:
        """Whether arguments have values of a kind that was not seen before.

        Those are integers and truth values beyond all others, as the padding may be,
        and floats other than a constant.
        """
        is_new = False
        for place, x in leaves_by_place(inputs):
            x = getattr(x, "array", x)
            if getattr(x, "dtype", None) is None or x.dtype.kind not in "biuf":
                continue
            low, high = self._ranges.get(place, (math.inf, -math.inf))
            if not x.size or (x.dtype.kind == "f" and low < high):
                continue
            new_low, new_high = float(x.min()), float(x.max())
            if new_low < low or new_high > high:
                self._ranges[place] = min(low, new_low), max(high, new_high)
                is_new = True
        return is_new


def _definition(program: Any) -> tuple[Any, ...]:
    """What functions have in common that are made anew for each batch.

    That is their code, the functions and links that they refer to, and which of the
    numbers are zero, such as the weight of a term of the loss.
    """
    found: dict[int, Any] = {}
    pending = [program]
    while pending:
        each = pending.pop()
        if id(each) in found:
            continue
        if isinstance(each, functools.partial):
            found[id(each)] = functools.partial
            pending += [each.func, *filter(_defines, each.args)]
            continue
        if isinstance(each, numbers.Number):
            found[len(found)] = bool(each)
            continue
        found[id(each)] = getattr(each, "__code__", each)
        if isinstance(each, types.MethodType):
            pending += [each.__self__, each.__func__]
        if isinstance(each, types.FunctionType):
            cells = [cell.cell_contents for cell in each.__closure__ or ()]
            pending += filter(_defines, (*cells, *(each.__defaults__ or ())))
    return tuple(found.values())


def _defines(x: Any) -> bool:
    return callable(x) or isinstance(x, numbers.Number)
