"""Sums of several arrays."""

from __future__ import annotations

from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_variable
from renga.functions.check import check_arrays
from renga.utils.type_check import InvalidType


def add(*xs: ArrayLike) -> Variable:
    """The sum of all the arrays and numbers, by ``+``.

    Raises:
        InvalidType: shapes or dtypes do not fit, or there is nothing to add.
    """
    if not xs:
        raise InvalidType("add: expected at least one array, got none")
    dtypes = {x.dtype.newbyteorder("=") for x in xs if hasattr(x, "dtype")}
    if len(xs) > 2 and len(dtypes) > 1:
        raise InvalidType(f"add: expected one dtype, got {[str(d) for d in dtypes]}")
    check_arrays("add", xs[0])
    y = as_variable(xs[0])
    for x in xs[1:]:
        y = y + x
    return y
