"""The compressor that sends factors of low rank."""

from __future__ import annotations

import zlib

import numpy

from renga import _core
from renga.communicators import Communicator
from renga.communicators.work import Work
from renga.core.types import Array
from renga.parallel.compression.compressor import Compressor
from renga.parallel.compression.state import Arrays, State, States
from renga.utils.argument import check_count


class PowerSGD(Compressor):
    """Sends the two factors of an approximation of low rank, found by a power step.

    A gradient is a matrix of its first axis by all others. Vectors, and matrices whose
    factors are no smaller, are sent as they are. Both factors are summed by all-reduce,
    so that the bytes do not grow with the number of nodes.

    Args:
        rank: of the approximation.

    Source: Vogels et al., PowerSGD: practical low-rank gradient compression for
    distributed optimization, NeurIPS 2019.
    """

    shared_states = frozenset({"Q"})

    def __init__(self, rank: int = 4) -> None:
        check_count("PowerSGD: rank", rank)
        self.rank = rank

    def reduce(self, xs: Arrays, states: States, comm: Communicator) -> Work:
        low_rank = [i for i, x in enumerate(xs) if self.pays(x)]
        whole = [x for i, x in enumerate(xs) if i not in low_rank]
        matrices = [_Matrix(xs[i], states[i], self.rank) for i in low_rank]
        work: Work = comm.all_reduce(
            [*whole, *(m.left for m in matrices)], "sum", wait=False
        )

        def finish(sums: list[Array]) -> None:
            for x, y in zip(whole, sums):
                x[...] = y
            rights = [m.project(y) for m, y in zip(matrices, sums[len(whole) :])]
            for m, y in zip(matrices, comm.all_reduce(rights, "sum")):
                m.finish(y)

        return work.then(finish)

    def pays(self, x: Array) -> bool:
        """Whether the factors of ``x`` have fewer elements than ``x``."""
        if x.ndim < 2 or x.size == 0:
            return False
        rows = len(x)
        columns = x.size // rows
        return (rows + columns) * self.rank < x.size


class _Matrix:
    """A gradient on its way: M Q, its orthonormal basis P, then M^T P."""

    def __init__(self, x: Array, state: State, rank: int) -> None:
        self._x = x.reshape(len(x), -1)
        self._state = state
        residual = state.zeros_like("residual", x).reshape(self._x.shape)
        self._is_finite = _core.compression.accumulate(self._x, residual)
        self._m = residual if self._is_finite else self._x
        self.left = self._m @ _orthonormal(self._start(rank))

    def _start(self, rank: int) -> Array:
        q = self._state.get("Q")
        if q is None or q.shape != (self._x.shape[1], rank):
            random = numpy.random.RandomState(zlib.crc32(self._state.name.encode()))
            q = random.normal(size=(self._x.shape[1], rank)).astype(numpy.float32)
        return q

    def project(self, left: Array) -> Array:
        """The right factor of this node's matrix, given the sum of left ones."""
        is_finite = bool(numpy.isfinite(left).all())
        self._p = _orthonormal(left) if is_finite else left
        right: Array = self._m.T @ self._p
        self._right = right
        return right

    def finish(self, right: Array) -> None:
        """Assigns the sum of the nodes' approximations, given that of right factors."""
        numpy.matmul(self._p, right.T, out=self._x)
        if numpy.isfinite(right).all():
            self._m -= self._p @ self._right.T
            self._state["Q"] = right


def _orthonormal(x: Array) -> Array:
    return numpy.linalg.qr(x)[0]
