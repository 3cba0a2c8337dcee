"""Arrays of dtypes that the core lacks, as views of dtypes that it has."""

from __future__ import annotations

import numpy as np

from renga.core.types import Array


def views(x: Array, op: str) -> list[Array]:
    """Arrays in the memory of ``x`` whose reductions are the reduction of ``x``.

    Complex numbers are added by their parts.

    Raises:
        TypeError: if it is no array.
    """
    if not isinstance(x, np.ndarray):
        raise TypeError(f"all_reduce: out: expected a numpy.ndarray, got {type(x)}")
    if x.dtype.kind == "c" and x.dtype.itemsize <= 16 and op in ("sum", "mean"):
        return [x.real, x.imag]
    return [x]
