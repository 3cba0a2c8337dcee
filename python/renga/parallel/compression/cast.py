"""The compressor that sends 16-bit floats."""

from __future__ import annotations

from collections.abc import Sequence

from renga.communicators import Communicator
from renga.communicators.work import Work
from renga.core.types import Array
from renga.parallel.compression.compressor import Compressor
from renga.parallel.compression.state import State

_DTYPES = ("float16", "bfloat16")


class Cast(Compressor):
    """Sends gradients rounded to a 16-bit dtype; they are added in float32.

    Args:
        dtype: ``"bfloat16"`` or ``"float16"``.
    """

    def __init__(self, dtype: str = "bfloat16") -> None:
        if dtype not in _DTYPES:
            raise ValueError(f"Cast: expected a dtype of {_DTYPES}, got {dtype!r}")
        self.dtype = dtype

    def reduce(
        self, xs: Sequence[Array], states: Sequence[State], comm: Communicator
    ) -> Work:
        work: Work = comm.all_reduce(xs, "sum", out=xs, wait=False, dtype=self.dtype)
        return work
