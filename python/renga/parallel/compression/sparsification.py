"""Compressors that send a part of each gradient's elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from renga import _core
from renga.core.types import Array
from renga.parallel.compression.compressor import KernelCompressor
from renga.parallel.compression.state import State
from renga.utils.argument import check_number

_kernels = _core.compression


def count_of(x: Array, ratio: float) -> int:
    """How many elements of ``x`` are sent: at least one, if there is one."""
    return min(x.size, max(1, int(ratio * x.size)))


class Sparsifier(KernelCompressor):
    """Sends a ratio of the elements.

    Args:
        ratio: of the elements that are sent, in (0, 1].

    Raises:
        TypeError: ``ratio`` is not a number.
        ValueError: it is not in (0, 1].
    """

    def __init__(self, ratio: float) -> None:
        name = type(self).__name__
        check_number(f"{name}: ratio", ratio)
        if not 0 < ratio <= 1:
            raise ValueError(f"{name}: expected a ratio in (0, 1], got {ratio}")
        self.ratio = ratio


class TopK(Sparsifier):
    """Sends the elements of the largest magnitude, 8 bytes each.

    Args:
        ratio: of the elements that are sent, in (0, 1].

    Source: Stich et al., Sparsified SGD with memory, NeurIPS 2018.
    """

    def take(self, x: Array, state: State) -> Sequence[Array]:
        return take_largest(x, count_of(x, self.ratio))

    def add_decoded(self, payload: Sequence[Array], out: Array) -> None:
        _kernels.add_at(out, *payload)


def take_largest(x: Array, count: int) -> tuple[Array, Array]:
    """Indices and values of the largest elements, which become zero in ``x``."""
    indices = numpy.empty(count, numpy.int32)
    values = numpy.empty(count, numpy.float32)
    _kernels.take_largest(x, indices, values)
    return indices, values


class RandomK(Sparsifier):
    """Sends random elements, 4 bytes each: one of each of equal parts of a gradient.

    Args:
        ratio: of the elements that are sent, in (0, 1].

    Source: Stich et al., Sparsified SGD with memory, NeurIPS 2018.
    """

    def take(self, x: Array, state: State) -> Sequence[Array]:
        values = numpy.empty(count_of(x, self.ratio), numpy.float32)
        seed = numpy.array(state.seed(), numpy.uint64)
        _kernels.take_random(x, int(seed), values)
        return seed, values

    def add_decoded(self, payload: Sequence[Array], out: Array) -> None:
        seed, values = payload
        _kernels.add_at_random(out, int(seed), values)
