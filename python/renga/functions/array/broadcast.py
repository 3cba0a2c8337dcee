"""Arrays broadcast to one shape."""

from __future__ import annotations

import functools

import numpy

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_arrays
from renga.utils.type_check import InvalidType


def broadcast(*args: ArrayLike) -> Variable | tuple[Variable, ...]:
    """Every array broadcast to the common shape.

    Raises:
        InvalidType: there is no array, or no such shape.
    """
    if not args:
        raise InvalidType("broadcast: expected at least one array, got none")
    check_arrays("broadcast", *args)
    shapes = [x.shape for x in args]
    try:
        shape = _common_shape(*shapes)
    except ValueError:
        raise InvalidType(
            f"broadcast: expected shapes that go together, got {shapes}"
        ) from None
    ys = tuple(_core.ops.broadcast_to(x, shape) for x in args)
    return ys if len(ys) > 1 else ys[0]


# NumPy takes as long for it as two operations of views.
_common_shape = functools.lru_cache(maxsize=256)(numpy.broadcast_shapes)
