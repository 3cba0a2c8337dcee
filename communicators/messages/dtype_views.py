"""Arrays of dtypes that the core lacks, as views of dtypes that it has."""

from __future__ import annotations

from renga.communicators.communicator import Array


def views(x: Array, op: str) -> list[Array]:
    """Arrays in the memory of ``x`` whose reductions are the reduction of ``x``.

    Complex numbers are added by their parts. Sums and products of unsigned integers
    have the same bits as those of signed ones.

    Raises:
        TypeError: if there are none for this dtype and ``op``.
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
