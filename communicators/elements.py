"""Arrays of dtypes that the core lacks, as views that it knows."""

from __future__ import annotations

import numpy as np


def views(x: np.ndarray, op: str) -> list[np.ndarray]:
    """Arrays in the memory of ``x`` whose reductions make up that of ``x``.

    Sums of complex numbers are those of their parts, and sums and products of
    unsigned integers have the bits of the signed ones'.

    Raises:
        TypeError: there are none for this dtype and ``op``.
    """
    if x.dtype.kind == "c" and x.dtype.itemsize <= 16 and op in ("sum", "mean"):
        return [x.real, x.imag]
    if x.dtype.kind == "u" and x.dtype.itemsize > 1:
        if op not in ("sum", "prod"):
            raise TypeError(
                f"all_reduce: expected signed integers for {op}, got {x.dtype}"
            )
        return [x.view(x.dtype.str.replace("u", "i"))]
    return [x]
