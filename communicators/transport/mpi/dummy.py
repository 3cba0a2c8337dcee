"""ChainerMN's dummy communicator, for timing steps without communication."""

from __future__ import annotations

from typing import Any

import numpy as np

from renga.communicators.communicator_base import ArrayOrArrays
from renga.communicators.transport.mpi.mpi_communicator import MpiCommunicator
from renga.communicators.work import Work
from renga.core.types import Array, DTypeLike


class DummyMpiCommunicator(MpiCommunicator):
    """``all_reduce`` returns this rank's own arrays at once.

    A training step takes as long as it would if the reduction of gradients took no
    time. Everything else, such as ``allreduce`` and objects, works as on ``mpi``.
    """

    def all_reduce(
        self,
        x: Any,
        op: str = "sum",
        out: Any = None,
        wait: bool = True,
        dtype: DTypeLike | None = None,
    ) -> Any:
        """This rank's ``x``, copied into ``out`` if that is given."""
        single = not isinstance(x, (list, tuple))
        xs, ys = ([x], [out]) if single else (x, out or [None] * len(x))
        results = [_copied(np.asarray(a), y) for a, y in zip(xs, ys)]
        result = results[0] if single else results
        return result if wait else Work(None, lambda: result)

    def allreduce(self, data: ArrayOrArrays) -> ArrayOrArrays:
        """The sum of the ranks' arrays, on every rank."""
        total: ArrayOrArrays = super().all_reduce(data)
        return total


def _copied(x: Array, y: Array | None) -> Array:
    if y is None:
        return x.copy()
    if y is not x:
        y[...] = x
    return y
