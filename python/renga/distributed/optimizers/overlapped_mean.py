"""The mean of all ranks' gradients, made while the way back still goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga import _core
from renga.communicators import packing
from renga.distributed.optimizers.notice import News, Notice
from renga.distributed.optimizers.shared_updates import READY

# Bytes of a bucket: large enough that messages cost little, small enough that the first
# is on its way soon.
_BUCKET = 4 << 20
_LINE = 64  # bytes of a line of the cache


class OverlappedMean:
    """Averages gradients in buckets, each started when this rank's part is complete.

    All ranks start the buckets in one order, that in which rank 0's gradients were
    ready in the first iteration. Whether a bucket waits for a parameter that a rank
    does not use, nobody needs to know before: it starts with zeros when the way back
    has ended. A gradient that grows after its bucket has started, by a ``backward()``
    inside of another one, follows in a round of its own. From the second iteration on,
    gradients lie in memory that the ranks of a node share, until the next update.

    Args:
        comm: the communicator.
        params: initialised parameters, the same on all ranks and in one order.
        zero_fill: whether a gradient that no rank has becomes zero, or stays None.
    """

    def __init__(self, comm: Any, params: Sequence[Any], zero_fill: bool) -> None:
        self._comm = comm
        self._params = list(params)
        self._zero_fill = zero_fill
        self._index = {id(param): i for i, param in enumerate(self._params)}
        self._agreed = False
        self._flats: list[Any] = []
        self._places: dict[int, Any] = {}
        self._fill_buckets(range(len(self._params) - 1, -1, -1))

    def _fill_buckets(self, order: Sequence[int]) -> None:
        self._buckets: list[list[int]] = []
        room, dtype = 0, None
        for i in order:
            x = self._params[i].array
            if not self._buckets or x.dtype != dtype or x.nbytes > room:
                self._buckets.append([])
                room, dtype = _BUCKET, x.dtype
            self._buckets[-1].append(i)
            room -= x.nbytes
        self._bucket_of = {
            i: b for b, bucket in enumerate(self._buckets) for i in bucket
        }

    def lay_out(self, places: dict[int, Any]) -> None:
        """Gives gradients memory that the ranks of a node share: these places, or own.

        It comes after the first mean.
        """
        if places:
            self._flats, self._places = [], places
        elif not self._places and self._comm.size > 1:
            if all(param.xp is numpy for param in self._params):
                self._share_buckets()

    def _share_buckets(self) -> None:
        for bucket in self._buckets:
            arrays = [self._params[i].array for i in bucket]
            # Kernels write gradients there, fastest where lines of the cache begin.
            line = _LINE // arrays[0].itemsize
            rooms = [-(-x.size // line) * line for x in arrays]
            flat = self._comm.window((sum(rooms),), arrays[0].dtype)
            flat[:] = 0
            self._flats.append(flat)
            parts = numpy.split(flat, numpy.cumsum(rooms)[:-1])
            for i, x, part in zip(bucket, arrays, parts):
                self._places[i] = part[: x.size].reshape(x.shape)

    def backward(self, loss: Any, loss_scale: float | None, notice: Notice) -> News:
        """``loss.backward()``, during which buckets start once ``notice`` is over.

        Where it says that parameters have changed, none has started.
        """
        self.begin(notice)
        number = _core.add_gradient_ready_hook(self._hear)
        placed = [self._params[i] for i in self._places]
        _core.set_gradient_buffers(placed, list(self._places.values()))
        try:
            loss.backward(loss_scale=loss_scale)
        finally:
            _core.set_gradient_buffers([], [])
            _core.remove_gradient_ready_hook(number)
        return self._hear_news()

    def begin(self, notice: Notice) -> None:
        """Prepares for gradients, which may come or not."""
        self._notice = notice
        self._news: News | None = None
        self._ready: dict[int, None] = {}
        self._open = [len(bucket) for bucket in self._buckets]
        self._works: list[Any] = []
        self._flags = numpy.zeros(len(self._params), numpy.uint8)

    def _hear_news(self) -> News:
        if self._news is None:
            self._news = self._notice.wait()
        return self._news

    def _hear(self, leaf: Any) -> None:
        i = self._index.get(id(leaf))
        if i is None or i in self._ready:
            return
        self._ready[i] = None
        self._open[self._bucket_of[i]] -= 1
        if self._news is None and not self._notice.test():
            return
        news = self._hear_news()
        if news.changed or news.stage == READY:
            return
        while len(self._works) < len(self._buckets):
            if self._open[len(self._works)] > 0:
                return
            self._start_next()

    def _start_next(self) -> None:
        b = len(self._works)
        grads = [self._take(i, self._places.get(i)) for i in self._buckets[b]]
        travelling = [self._flats[b]] if self._flats else grads
        work = packing.average(self._comm, travelling, wait=False)
        self._works.append((work, grads))

    def _take(self, i: int, place: Any = None) -> Any:
        """This rank's part in a mean, in memory that nothing else uses."""
        param = self._params[i]
        if param.grad_var is not None:
            self._flags[i] = 1
        return packing.take_gradient(param, self._hear_news().weight, place)

    def finish(self, loss_scale: float | None) -> None:
        """Waits for the means and makes them the gradients of the parameters."""
        while len(self._works) < len(self._buckets):
            self._start_next()
        late = [param.grad_var is not None for param in self._params]
        self._flags[late] = 2
        flags = self._comm.all_reduce(self._flags, "max")
        means: dict[int, Any] = {}
        for bucket, (work, grads) in zip(self._buckets, self._works):
            work.wait()
            means.update(zip(bucket, grads))
        for i in numpy.flatnonzero(flags == 2).tolist():
            means[i] += packing.average(self._comm, [self._take(i)])[0]
        for i, param in enumerate(self._params):
            if flags[i] or self._zero_fill:
                param.grad = means[i]
                param._loss_scale = loss_scale
        self._works = []
        if not self._agreed:
            self._agree()

    def _agree(self) -> None:
        rest = (i for i in range(len(self._params)) if i not in self._ready)
        self._fill_buckets(self._comm.bcast_obj([*self._ready, *rest]))
        self._agreed = True
