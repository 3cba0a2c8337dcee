"""Variables as they are."""

from __future__ import annotations

from typing import overload

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_array, holds_numbers
from renga.functions.check import check_arrays
from renga.utils.type_check import InvalidType


@overload
def identity(x: ArrayLike, /) -> Variable: ...
@overload
def identity(
    x: ArrayLike, y: ArrayLike, /, *more: ArrayLike
) -> tuple[Variable, ...]: ...
def identity(*inputs: ArrayLike) -> Variable | tuple[Variable, ...]:
    """New variables with the values of the inputs; one alone is no tuple."""
    check_arrays("identity", *inputs)
    try:
        ys = tuple(map(_core.ops.identity, inputs))
    except InvalidType:
        if all(map(holds_numbers, inputs)):
            raise
        ys = tuple(Variable(as_array(x), requires_grad=False) for x in inputs)
    return ys[0] if len(ys) == 1 else ys
