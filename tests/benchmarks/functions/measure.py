"""Times a row in turn with a copy of as many bytes, or a product of as many FLOPs."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

import renga
import renga.functions as F
from renga.utils.containers import leaves, map_leaves
from tests.catalogue.speed import Input, Row

_BUFFER = 256 << 20  # bytes; the longest copy
_SIDE = 384  # of the product that is compared with


class Share(NamedTuple):
    """A function's speed in parts of the machine's.

    Attributes:
        share: the time of the copy or the product, divided by that of the function.
        seconds: of the function.
        work: bytes or FLOPs.
    """

    share: float
    seconds: float
    work: float


class Trial:
    """One row with its arrays.

    Args:
        row: what is timed.
        backward: whether gradients of all inputs that have some are computed, too.
    """

    def __init__(self, row: Row, backward: bool) -> None:
        random = numpy.random.RandomState(0)
        self._leaves: list[Any] = []
        self._row, self._backward = row, backward
        self._inputs = map_leaves(functools.partial(self._made, random), row.inputs)
        ys = self._outputs()
        self.is_differentiable = any(y.requires_grad for y in ys)
        if backward and self.is_differentiable:
            self._roots = [i for i, y in enumerate(ys) if y.requires_grad]
            self._gys = [
                renga.Variable(random.standard_normal(ys[i].shape).astype(ys[i].dtype))
                for i in self._roots
            ]
        arrays = [x for x in leaves(self._inputs) if hasattr(x, "dtype")]
        read, written = sum(map(_nbytes, arrays)), sum(map(_nbytes, ys))
        gradients = sum([_nbytes(x) for x in self._leaves])
        passes = 2 if backward else 1
        self.bytes = passes * (read + written) + gradients * backward
        # The gradients of a product's two factors are products as large.
        self.flops = row.flops * (3 if backward else 1)
        self.reference = "product" if row.flops else "copy"

    def _made(self, random: Any, x: Any) -> Any:
        if not isinstance(x, Input):
            return x
        array = x.array(random)
        if not x.needs_gradient:
            return array
        self._leaves.append(renga.Variable(array, requires_grad=True))
        return self._leaves[-1]

    def _outputs(self) -> list[Any]:
        found = leaves(self._row.call(*self._inputs))
        ys = [y if isinstance(y, renga.Variable) else renga.Variable(y) for y in found]
        for y in ys:
            y.array  # noqa: B018  computes what was put off
        return ys

    def __call__(self) -> None:
        """Computes the outputs, and gradients if it has some."""
        if not self._backward:
            with renga.no_backprop_mode():
                self._outputs()
            return
        ys = self._outputs()
        roots = [ys[i] for i in self._roots]
        for gx in renga.grad(roots, self._leaves, self._gys):
            if gx is not None:
                gx.array  # noqa: B018

    def share(self, rounds: int = 5) -> Share:
        """The function's best time beside the machine's, in turn, on one thread."""
        owns, references = [], []
        threads = renga.get_num_threads()
        renga.set_num_threads(1)
        try:
            for _ in range(rounds):
                references.append(self._reference())
                owns.append(seconds(self))
        finally:
            renga.set_num_threads(threads)
        own, work = min(owns), self.flops or self.bytes
        return Share(min(references) / own, own, work)

    def _reference(self) -> float:
        if self.flops:
            return self.flops * _seconds_per_flop()
        return seconds(functools.partial(_copy, self.bytes // 2))


def seconds(call: Callable[[], Any]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _nbytes(x: Any) -> int:
    return int(x.size * numpy.dtype(x.dtype).itemsize)


@functools.lru_cache(1)
def _buffers() -> tuple[numpy.ndarray, numpy.ndarray]:
    return numpy.zeros(_BUFFER, "u1"), numpy.zeros(_BUFFER, "u1")


def _copy(nbytes: int) -> None:
    source, target = _buffers()
    target[:nbytes] = source[:nbytes]


@functools.lru_cache(1)
def _factors() -> tuple[numpy.ndarray, numpy.ndarray]:
    random = numpy.random.RandomState(0)
    return tuple([random.standard_normal((_SIDE, _SIDE)).astype("f") for _ in "ab"])


def _seconds_per_flop() -> float:
    a, b = _factors()
    return seconds(lambda: F.matmul(a, b).array) / (2 * _SIDE**3)
