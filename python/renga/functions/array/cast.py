"""Another dtype."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.utils.type_check import InvalidType
from renga.variable import Variable, as_array, as_variable, holds_numbers


def cast(x: Any, typ: Any) -> Variable:
    """``x`` in dtype ``typ``; itself if it has that already."""
    # Not skipped for equal dtypes: the core's bfloat16 arrays report float32.
    try:
        return _core.ops.cast(as_variable(x), typ)
    except InvalidType:
        if holds_numbers(x):
            raise
        return Variable(as_array(x).astype(typ), requires_grad=False)


def cast_floats(dtype: Any, *xs: Any) -> list[Any]:
    """Arrays of floats cast to ``dtype``; others, and None, as they are."""
    return [
        x if x is None or x.dtype == dtype or x.dtype.kind != "f" else cast(x, dtype)
        for x in xs
    ]


def promoted(*xs: Any) -> list[Any]:
    """The arrays, cast to the dtype that NumPy would compute with."""
    dtype = xs[0].dtype
    for x in xs[1:]:
        dtype = numpy.promote_types(dtype, x.dtype)
    return [x if x.dtype == dtype else cast(x, dtype) for x in xs]
