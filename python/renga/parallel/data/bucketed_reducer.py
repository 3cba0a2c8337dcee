"""Averaging of gradients in buckets, overlapped with the backward pass."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable

import numpy

from renga import _core
from renga.communicators import Communicator, packing
from renga.core.parameter import Parameter
from renga.parallel.data import buckets
from renga.parallel.data.gradients import take_gradient
from renga.parallel.data.overlap import OverlapTrial
from renga.parallel.data.reducer import Reducer
from renga.parallel.data.synchronization import Eligibility, SyncRequest
from renga.parallel.data.tracing import note_bucket, span


class BucketedReducer(Reducer):
    """Averages each bucket of gradients as soon as this rank has all of them.

    On networks where that turns out to be slower, it does so after ``backward()``, in
    larger buckets.

    All ranks launch the buckets in one order: that in which rank 0's gradients became
    ready in the first step. A bucket that waits for a parameter which this rank's loss
    does not depend on is launched by ``finalize``, with zeros for it. A gradient that
    grows after its bucket was launched, by a ``backward()`` inside another one, is
    averaged in a further round. From the second step on, ``backward()`` writes the
    gradients into memory that the ranks of a node share.

    Args:
        comm: the communicator.
        params: initialized parameters, the same on all ranks and in one order.
        zero_fill: whether a gradient that no rank has becomes zero, or stays None.
        names: of the parameters, for the hook.
        hook: called with each :class:`~buckets.Bucket`; starts to average it, and
            returns a Work. Without one, the communicator averages.
    """

    def __init__(
        self,
        comm: Communicator,
        params: Sequence[Parameter],
        zero_fill: bool,
        names: Sequence[str] = (),
        hook: buckets.BucketHook | None = None,
    ) -> None:
        self._comm = comm
        self._params = list(params)
        self._names = list(names)
        self._hook = hook
        self._zero_fill = zero_fill
        self._index = {id(param): i for i, param in enumerate(self._params)}
        self._is_order_agreed = False
        # The flat arrays are by the first parameter of each bucket; there is none if
        # nothing is flattened.
        self._flattened: dict[int, numpy.ndarray] = {}
        self._buffers: dict[int, numpy.ndarray] = {}  # by the parameters' indices
        self._trial = OverlapTrial(comm)
        size = buckets.BUCKET_BYTES
        if hook is not None:
            size = buckets.hooked_bucket_bytes(comm)
        self._assign_buckets(range(len(self._params) - 1, -1, -1), size)

    @property
    def buckets(self) -> list[list[int]]:
        """Indices of parameters, in the order in which they are averaged."""
        return self._overlapped

    def _assign_buckets(self, order: Sequence[int], size: int) -> None:
        # Without overlap a small bucket gains nothing. A hook still gets several, since
        # one may be sent while it encodes the next; a user's sees the same ones always.
        large = sys.maxsize
        if self._hook is not None:
            is_free = getattr(self._hook, "reduces_by_parameter", False)
            large = max(size, buckets.BUCKET_BYTES) if is_free else size
        self._use_buckets(
            buckets.assign_buckets(self._params, order, size),
            buckets.assign_buckets(self._params, order, large),
        )

    def _use_buckets(
        self, overlapped: list[list[int]], not_overlapped: list[list[int]]
    ) -> None:
        self._overlapped = overlapped
        self._not_overlapped = not_overlapped
        self._bucket_of = {i: b for b, bucket in enumerate(overlapped) for i in bucket}

    def use_buffers(self, buffers: Mapping[int, numpy.ndarray]) -> None:
        """Has ``backward()`` write gradients into these buffers from now on.

        Every rank calls it after the first step; without buffers, the reducer allocates
        its own.

        Args:
            buffers: by the indices of parameters; none, or one for each.
        """
        if buffers:
            self._flattened, self._buffers = {}, dict(buffers)
        elif not self._buffers and self._comm.size > 1:
            if all(param.xp is numpy for param in self._params):
                self._flatten_buckets()

    def _flatten_buckets(self) -> None:
        found: dict[int, numpy.ndarray] = {}
        for bucket in self._overlapped:
            arrays = [self._params[i].array for i in bucket]
            flat, views = buckets.flattened_bucket(self._comm, arrays)
            self._flattened[bucket[0]] = flat
            found.update(zip(bucket, views))
        self._buffers = found

    def begin(self, request: SyncRequest, loss_scale: float | None = None) -> None:
        self._request = request
        self._loss_scale = loss_scale
        self._ready: dict[int, None] = {}  # in the order of arrival
        self._buckets = (
            self._overlapped if self._trial.overlaps else self._not_overlapped
        )
        self._missing = [len(bucket) for bucket in self._overlapped]
        # Works, and functions of their results that return the mean gradients.
        self._launched: list[tuple[Any, Callable[[Any], list[Any]]]] = []
        self._launch_times: list[int] = []  # nanoseconds
        self._trial.begin()
        self._flags = numpy.zeros(len(self._params), numpy.uint8)

    @contextlib.contextmanager
    def attached(self) -> Iterator[None]:
        hook = _core.add_gradient_ready_hook(self.add)
        leaves = [self._params[i] for i in self._buffers]
        _core.set_gradient_buffers(leaves, list(self._buffers.values()))
        try:
            yield
        finally:
            _core.set_gradient_buffers([], [])
            _core.remove_gradient_ready_hook(hook)

    def add(self, param: Parameter) -> None:
        """Launches the buckets that ``param`` completes, once all ranks are in step."""
        i = self._index.get(id(param))
        if i is None or i in self._ready:
            return
        self._ready[i] = None
        self._missing[self._bucket_of[i]] -= 1
        if not self._trial.overlaps or not self._is_next_complete():
            return
        # Not polled for: where the graph has collectives of its own, as that of a
        # multi-node normalization, all ranks have to launch a bucket before the same
        # one. A rank that waits here is ahead of the others, which it needs in the end.
        result = self._request.wait()
        if result.must_wait:
            return
        if result.eligibility is Eligibility.READY:  # UpdatingReducer will reduce
            return
        while self._is_next_complete():
            self._launch(result.weight)

    def _is_next_complete(self) -> bool:
        """Whether this rank has all gradients of the bucket to be launched next."""
        b = len(self._launched)
        return b < len(self._buckets) and self._missing[b] == 0

    def _launch(self, weight: float) -> None:
        self._launch_times.append(time.perf_counter_ns())
        self._launch_next(weight)

    def _launch_next(self, weight: float) -> None:
        b = len(self._launched)
        grads = [self._take(i, weight, self._buffers.get(i)) for i in self._buckets[b]]
        if self._hook is not None:
            names = [self._names[i] for i in self._buckets[b]]
            bucket = buckets.Bucket(names, grads, self._loss_scale)
            work = self._hook(bucket)
            if not hasattr(work, "wait"):
                raise TypeError(f"bucket hook: expected a Work, got {work!r}")
            self._launched.append((work, bucket.means_of))
        else:
            flats = (self._flattened.get(i) for i in self._buckets[b])
            sent = [flat for flat in flats if flat is not None] or grads
            work = packing.average(self._comm, sent, wait=False)
            self._launched.append((work, lambda _: grads))

    def _take(self, i: int, weight: float, buffer: Any = None) -> Any:
        """This rank's weighted gradient, in memory that nothing else refers to."""
        param = self._params[i]
        if param.grad_var is not None:
            self._flags[i] = 1
        return take_gradient(param, weight, buffer)

    def finalize(self, weight: float) -> None:
        while len(self._launched) < len(self._buckets):
            self._launch(weight)
        self._weight = weight

    def _arrived(self, b: int) -> Any:
        """Waits for a bucket, in their order; what its function returns."""
        work, means_of = self._launched[b]
        means = means_of(work.wait())
        params = [self._params[i] for i in self._buckets[b]]
        note_bucket(b, params, work, self._launch_times[b])
        if b == len(self._launched) - 1:
            self._launched = []
            self._trial.end()
        return means

    def wait(self) -> bool:
        with span("wait for gradients", "waiting"):
            flags = self._agreed_flags()
            results = [self._arrived(b) for b in range(len(self._launched))]
        means: dict[int, Any] = {}
        for bucket, found in zip(self._buckets, results):
            means.update(zip(bucket, found))
        for i in numpy.flatnonzero(flags == 2).tolist():
            rest = self._take(i, self._weight)
            means[i] += packing.average(self._comm, [rest])[0]
        for i, param in enumerate(self._params):
            if flags[i] or self._zero_fill or self._has_kept_back(means[i]):
                param.grad = means[i]
                param.loss_scale = self._loss_scale
        if not self._is_order_agreed:
            self._agree_on_order()
        return True

    def _has_kept_back(self, mean: Any) -> bool:
        """Whether a mean of no gradients has what a hook has kept of earlier ones."""
        return self._hook is not None and bool(mean.any())

    def _agreed_flags(self) -> numpy.ndarray:
        """By parameter, the largest of all ranks' flags.

        1: a rank has this gradient; 2: it has grown there after its bucket's launch.
        """
        grown = [param.grad_var is not None for param in self._params]
        self._flags[grown] = 2
        flags: numpy.ndarray = self._comm.all_reduce(self._flags, "max")
        return flags

    def _agree_on_order(self) -> None:
        unused = (i for i in range(len(self._params)) if i not in self._ready)
        if self._hook is None:
            size = buckets.bucket_bytes(self._comm)
        else:
            size = buckets.hooked_bucket_bytes(self._comm)
        agreed = self._comm.bcast_obj(([*self._ready, *unused], size))
        self._assign_buckets(*agreed)
        self._is_order_agreed = True
