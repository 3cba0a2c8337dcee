"""Elements in another order."""

from __future__ import annotations

from typing import Any

import numpy

from renga.functions.array.get_item import get_item
from renga.functions.check import check_axis
from renga.variable import Variable, as_array, as_variable


def permutate(x: Any, indices: Any, axis: int = 0, inv: bool = False) -> Variable:
    """``x[indices]`` along an axis; with ``inv`` what that came from.

    Raises:
        ValueError: indices are not an array of integers of one axis.
        InvalidType: there is no such axis.
        IndexError: there are no such elements.
    """
    indices = as_array(indices)
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise ValueError(
            "permutate: expected indices as an array of integers of one axis, got "
            f"{indices.shape} {indices.dtype}"
        )
    axis = check_axis("permutate", x, axis)
    if inv:
        indices = numpy.argsort(indices)
    return get_item(as_variable(x), (slice(None),) * axis + (indices,))
