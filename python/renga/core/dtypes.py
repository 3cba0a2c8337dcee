"""The default dtype of links and data sets."""

from __future__ import annotations

import numpy

from renga.core.configuration import config
from renga.core.types import DTypeLike


class _MixedPrecision:
    """Mixed precision: parameters in float32, computation in a narrower dtype."""

    def __init__(self, name: str, dtype: DTypeLike) -> None:
        self.name = name
        self.dtype = numpy.dtype(dtype)  # numpy.dtype(self) reads this

    def __repr__(self) -> str:
        return f"dtype({self.name!r})"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name


mixed16 = _MixedPrecision("mixed16", numpy.float16)
# NumPy has no bfloat16, so the arrays stay float32 and the core rounds inside.
mixed_bfloat16 = _MixedPrecision("mixed_bfloat16", numpy.float32)


def get_dtype(
    dtype: DTypeLike | None = None, map_mixed16: DTypeLike | None = None
) -> numpy.dtype:
    """``dtype``, or ``config.dtype`` if it is None; mixed16 becomes ``map_mixed16``."""
    if dtype is None:
        dtype = config.dtype
    if dtype is mixed16 and map_mixed16 is not None:
        dtype = map_mixed16
    return numpy.dtype(dtype)
