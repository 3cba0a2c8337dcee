"""Graphs of ranks that exchange parameters, as matrices of weights."""

from __future__ import annotations

import functools

import numpy

from renga.core.types import Array
from renga.utils.argument import check_count


class Graph:
    """Who exchanges with whom.

    A subclass implements ``_weights``. Graphs whose weights change repeat after
    ``period`` steps.
    """

    def period(self, size: int) -> int:
        """After how many steps the weights of ``size`` ranks repeat."""
        return 1

    def weights(self, size: int, step: int = 0) -> Array:
        """The matrix W (size, size) of a step: rank i takes ``sum_j W[i, j] x_j``.

        It cannot be written to.

        Raises:
            TypeError, ValueError: if the graph has no such number of ranks, or ``step``
                is no count.
        """
        check_count("Graph.weights: size", size)
        check_count("Graph.weights: step", step, 0)
        return _cached(self, size, step % self.period(size))

    def neighbours(self, rank: int, size: int) -> list[int]:
        """The ranks that ``rank`` sends to in any step.

        Raises:
            TypeError, ValueError: if there is no such rank, or no such number of them.
        """
        check_count("Graph.neighbours: rank", rank, 0)
        check_count("Graph.neighbours: size", size, rank + 1)
        steps = range(self.period(size))
        sent = sum(self.weights(size, step)[:, rank] for step in steps)
        return [int(r) for r in numpy.flatnonzero(sent) if r != rank]

    def _weights(self, size: int, step: int) -> Array:
        raise NotImplementedError


@functools.lru_cache(maxsize=256)
def _cached(graph: Graph, size: int, step: int) -> Array:
    weights = graph._weights(size, step)
    weights.flags.writeable = False  # it is the same in each call
    return weights


class Ring(Graph):
    """Each rank, and its neighbours on both sides, with a third of the weight."""

    def _weights(self, size: int, step: int) -> Array:
        return _circulant(size, [0, 1, -1])


class Torus(Graph):
    """A grid whose ends are joined: each rank and its four neighbours.

    Args:
        rows: of ranks, which divide their number; by default the nearest to a square.

    Raises:
        TypeError, ValueError: if that is no count.
    """

    def __init__(self, rows: int | None = None) -> None:
        if rows is not None:
            check_count("Torus: rows", rows)
        self._rows = rows

    def _weights(self, size: int, step: int) -> Array:
        rows = self._rows
        if rows is None:
            rows = max(r for r in range(1, int(size**0.5) + 1) if size % r == 0)
        if size % rows:
            raise ValueError(f"Torus: expected {rows} rows to divide {size} ranks")
        columns = size // rows
        identity = numpy.eye
        along = _neighbours(columns)
        across = _neighbours(rows)
        whole = numpy.kron(identity(rows), along) + numpy.kron(
            across, identity(columns)
        )
        counts: Array = whole + numpy.eye(size)
        weights: Array = counts / counts.sum(axis=1)[0]
        return weights


class Complete(Graph):
    """Everybody with everybody: each step gives the mean."""

    def _weights(self, size: int, step: int) -> Array:
        return numpy.full((size, size), 1 / size)


class Hypercube(Graph):
    """The ranks whose numbers differ in one bit; there are 2^k ranks."""

    def _weights(self, size: int, step: int) -> Array:
        if size & (size - 1):
            raise ValueError(f"Hypercube: expected 2^k ranks, got {size}")
        bits = size.bit_length() - 1
        w = numpy.eye(size) / (bits + 1)
        for rank in range(size):
            for bit in range(bits):
                w[rank, rank ^ (1 << bit)] = 1 / (bits + 1)
        return w


class ExponentialGraph(Graph):
    """Rank r sends to r + 1, r + 2, r + 4, ...

    Args:
        one_peer: to one of them in each step, in turn: of 2^k ranks each has the mean
            after k steps.

    Source: Ying et al., Exponential graph is provably efficient for decentralized deep
    training, NeurIPS 2021.
    """

    def __init__(self, one_peer: bool = True) -> None:
        self._one_peer = one_peer

    def period(self, size: int) -> int:
        return max(1, (size - 1).bit_length()) if self._one_peer else 1

    def _weights(self, size: int, step: int) -> Array:
        offsets = [1 << i for i in range((size - 1).bit_length())]
        return _circulant(
            size, [0, *(offsets[step : step + 1] if self._one_peer else offsets)]
        )


class Weights(Graph):
    """A matrix of the user's.

    Args:
        w: not negative; each column sums to 1, and so does each row unless the method
            is ``sgp``.

    Raises:
        TypeError, ValueError: if it is no such matrix.
    """

    def __init__(self, w: object) -> None:
        if numpy.asarray(w).dtype.kind not in "biuf":
            raise TypeError(f"Weights: expected a matrix of numbers, got {w!r}")
        self._w = numpy.array(w, numpy.float64)
        shape = self._w.shape
        if len(shape) != 2 or shape[0] != shape[1] or (self._w < 0).any():
            raise ValueError(
                f"Weights: expected a square matrix without negative numbers, got {w}"
            )
        if not numpy.allclose(self._w.sum(axis=0), 1, rtol=0, atol=1e-12):
            raise ValueError(
                f"Weights: expected columns that sum to 1, got {self._w.sum(axis=0)}"
            )

    def _weights(self, size: int, step: int) -> Array:
        if len(self._w) != size:
            raise ValueError(f"Weights: expected {len(self._w)} ranks, got {size}")
        return self._w


def is_doubly_stochastic(w: Array) -> bool:
    """Whether rows and columns of a matrix sum to 1."""
    return all(
        numpy.allclose(w.sum(axis=axis), 1, rtol=0, atol=1e-12) for axis in (0, 1)
    )


def _circulant(size: int, offsets: list[int]) -> Array:
    """Rank i takes from i - offset, each with the same weight; repeated ones once."""
    distinct = sorted({offset % size for offset in offsets})
    w = numpy.zeros((size, size))
    for offset in distinct:
        for rank in range(size):
            w[rank, (rank - offset) % size] = 1 / len(distinct)
    return w


def _neighbours(size: int) -> Array:
    """1 between the neighbours on a ring of ``size``."""
    w = numpy.zeros((size, size))
    for rank in range(size):
        for other in {(rank + 1) % size, (rank - 1) % size} - {rank}:
            w[rank, other] = 1
    return w
