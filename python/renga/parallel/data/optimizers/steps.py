"""The steps of an optimizer whose gradients several ranks compute."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from renga.communicators import Communicator
from renga.core.optimizer import Optimizer
from renga.parallel.data.accumulation import Accumulation, of_other_losses
from renga.parallel.data.buckets import BucketHook
from renga.parallel.data.delayed_reducer import DelayedReducer
from renga.parallel.data.gradients import require_whole_gradients, spend_gradients
from renga.parallel.data.reducer import Reducer
from renga.parallel.data.reducers import Reducers
from renga.parallel.data.replicas.first_pass import initialize
from renga.parallel.data.replicas.repeatable_pass import RepeatablePass
from renga.parallel.data.replicas.replicas import Replicas
from renga.parallel.data.sample_weighting import GradientWeight, warn_of_unknown_samples
from renga.parallel.data.sharded_states.state_sharding import StateSharding
from renga.parallel.data.synchronization import (
    Eligibility,
    GradientSource,
    SyncRequest,
    SyncResult,
)

_UPDATES_PER_CHECK = 10  # in debug mode, of what has to be equal on all ranks


class Steps:
    """Makes the steps in which all ranks take part.

    A step is: synchronize (:class:`SyncRequest`), compute gradients, reduce them
    (:class:`Reducer`), update. On each rank it is :meth:`by_loss`, :meth:`by_caller` or
    :meth:`by_zeros`, of which other ranks know by their request alone.

    Args:
        comm: of the ranks that train one model.
        optimizer: makes the updates.
        zero_fill: whether a parameter without a gradient on all ranks gets zeros.
        shard: what each rank keeps a shard of; None for nothing.
        delayed: the only reducer, for double buffering.
    """

    def __init__(
        self,
        comm: Communicator,
        optimizer: Optimizer,
        zero_fill: bool,
        shard: str | None,
        delayed: DelayedReducer | None,
    ) -> None:
        self._comm, self._optimizer, self._shard = comm, optimizer, shard
        sharding = None if shard is None else StateSharding(comm, optimizer, shard)
        self.replicas = Replicas(comm, optimizer)
        self.reducers = Reducers(comm, optimizer, zero_fill, sharding, delayed)
        self.accumulation = Accumulation()
        self._pass = RepeatablePass()
        self._mean_samples: Any = None  # of the last step; None before the first one
        self._has_warned = False
        self.updates = 0  # that have been made

    def add_hook(self, hook: BucketHook) -> None:
        """Has ``hook`` average buckets of gradients, as :meth:`Reducers.add_hook`."""
        self.reducers.add_hook(hook)
        if self.replicas.has_begun:
            self.reducers.make(self.replicas.params())

    def by_loss(
        self,
        forward: Callable[[], object],
        count: Callable[[], int | None],
        is_last: bool = False,
    ) -> None:
        """Of ``forward()``, a loss that is a mean over ``count()`` samples.

        Args:
            forward: computes the loss.
            count: the samples, once they are known; None if they are not.
            is_last: whether accumulated gradients are sent in any case.
        """
        self.prepare(forward, count(), GradientSource.LOSS)
        accumulation = self.accumulation
        if not (is_last or accumulation.is_last):
            self._add_gradients(forward(), count())
            accumulation.keep_sums(self._optimizer.target)
            return
        kept = accumulation.batches
        while True:
            # With other parameters than rank 0's, a forward pass would be for nothing.
            is_new = self._has_new_parameters()
            loss = None if is_new else self._pass.run(self._optimizer.target, forward)
            self.reducers.require_own_graph(loss)
            samples = count()
            request = self._synchronize(
                accumulation.with_batch(samples, self._mean_samples),
                GradientSource.LOSS,
            )
            if not request.has_new_parameters:
                self._backward(loss, samples, request)
            result = request.wait()
            del loss  # the graph must not outlive its use
            if not result.parameters_differ:
                break
            is_same = request.has_new_parameters and not result.have_loaded
            accumulation.begin_again(kept, is_same)
            self._pass.undo()
            self._replace_parameters(forward, result)
        self._pass.keep()
        self._reduce_and_update(self.reducers.of_loss, result)
        accumulation.reset()

    def by_caller(self, samples: int | None) -> None:
        """Of gradients that the caller has set, for this many samples."""
        require_whole_gradients(self._optimizer.target.params())
        source = GradientSource.EXTERNAL
        is_replaced = self.prepare(lambda: None, samples, source)
        if not is_replaced:
            weight = GradientWeight(samples, 1.0 if samples is None else float(samples))
            request = self._synchronize(weight, source)
            result = request.wait()
            if result.parameters_differ:
                is_replaced = self._replace_parameters(lambda: None, result)
        if is_replaced:  # the gradients are of other parameters
            for param in self._optimizer.target.params():
                if param.grad is not None:
                    param.grad[...] = 0  # ChainerMN's callers write into the array
        else:
            self._reduce_external_gradients(request, result)

    def by_zeros(self) -> bool:
        """Of a rank that has no more data.

        Returns:
            Whether this is so on all ranks, and nothing was done.
        """
        is_first = self._mean_samples is None
        request = self._synchronize(GradientWeight(0, 0.0), GradientSource.JOINED)
        result = request.wait()
        if result.all_joined:
            return True
        starts_again = is_first or result.parameters_differ
        if result.parameters_differ:
            is_replaced = self._replace_parameters(lambda: None, result)
            if result.external_gradients and not is_first:
                starts_again = is_replaced
        if starts_again:
            self._note_samples(result)
            return False
        self._optimizer.target.cleargrads()
        if result.external_gradients:
            self._reduce_external_gradients(request, result)
        else:
            reducer = self.reducers.of_loss
            reducer.begin(request, self._optimizer.loss_scale)
            self._reduce_and_update(reducer, result)
        return False

    def prepare(
        self, forward: Callable[[], object], samples: int | None, source: GradientSource
    ) -> bool:
        """Has all ranks agree on parameters and the unit of samples, once.

        Returns:
            Whether rank 0's parameters have replaced other ones.
        """
        if self._mean_samples is not None:
            return False
        result = self._synchronize(GradientWeight(samples), source).wait()
        differ = result.parameters_differ
        is_replaced = differ and self._replace_parameters(forward, result)
        self._note_samples(result)
        return is_replaced

    def _note_samples(self, result: SyncResult) -> None:
        self._mean_samples = result.mean_samples or self._mean_samples or 1.0

    def _backward(self, loss: Any, samples: int | None, request: SyncRequest) -> None:
        reducer = self.reducers.of_loss
        self.accumulation.take_sums()
        reducer.begin(request, self._optimizer.loss_scale)
        with contextlib.nullcontext() if samples == 0 else reducer.attached():
            self._add_gradients(loss, samples)

    def _add_gradients(self, loss: Any, samples: int | None) -> None:
        if samples is None and self._comm.size > 1 and not self._has_warned:
            self._has_warned = True
            warn_of_unknown_samples(self._comm.rank)
        self.accumulation.take_sums()
        if not self.accumulation.batches:
            self._optimizer.target.cleargrads()
        model = self._optimizer.target
        with of_other_losses(model) if samples == 0 else contextlib.nullcontext():
            self.accumulation.add(
                *(model, loss, samples), self._mean_samples, self._optimizer.loss_scale
            )

    def _reduce_external_gradients(
        self, request: SyncRequest, result: SyncResult
    ) -> None:
        reducer = self.reducers.of_caller
        # Gradients of the caller are scaled if backward() was told so.
        scales = [param.loss_scale for param in self._optimizer.target.params()]
        reducer.begin(request, next(filter(None, scales), None))
        self._reduce_and_update(reducer, result)

    def _reduce_and_update(self, reducer: Reducer, result: SyncResult) -> None:
        if result.settings_differ:
            self.replicas.require_equal_settings(result.joined)
        sharded = self.reducers.sharded
        if sharded is not None and result.eligibility is Eligibility.READY:
            reducer = sharded
        reducer.finalize(result.weight)
        if reducer.wait():
            self.reducers.update(reducer)
        if not self.reducers.keep_sums(reducer, result.weight):
            spend_gradients(self._optimizer.target.params())
        if sharded is not None and result.eligibility is Eligibility.POSSIBLE:
            sharded.move_to_shared_memory()
        self.reducers.use_buffers(reducer)
        self._note_samples(result)
        self.updates += 1
        if result.debugs and self.updates % _UPDATES_PER_CHECK == 0:
            self.replicas.require_equal_settings(result.joined)
            has_states = self.reducers.sharding is None
            self.replicas.require_equal_arrays(has_states)

    def _synchronize(
        self, weight: GradientWeight, source: GradientSource
    ) -> SyncRequest:
        has_loaded = self.replicas.has_loaded
        is_new = self._has_new_parameters()
        self.replicas.has_loaded = False
        sharding = self.reducers.sharding
        has_states = sharding is None or not sharding.is_divided
        return SyncRequest(
            self._comm,
            is_new,
            self.replicas.checksum(has_states) if has_loaded else 0,
            self.replicas.fingerprint(),
            source,
            self.reducers.eligibility(),
            weight,
        )

    def _has_new_parameters(self) -> bool:
        """Whether there are parameters that the other ranks do not have yet."""
        if self.replicas.has_loaded:
            self._adopt_parameters()
        sharding = self.reducers.sharding
        return (sharding is not None and not sharding.fits()) or self.replicas.differ()

    def _replace_parameters(
        self, forward: Callable[[], Any], result: SyncResult
    ) -> bool:
        """Gives all ranks the parameters and states of rank 0; every rank calls it.

        Returns:
            Whether gradients set by the caller belong to other parameters than these.
        """
        comm = self._comm
        shards = comm.allgather_obj(self._shard)
        if len(set(shards)) > 1:
            raise ValueError(f"update: expected one shard on all ranks, got {shards}")
        is_first = self._mean_samples is None
        initialize(comm, self.replicas.beginning(), forward, is_first)
        has_run = result.external_gradients
        self.reducers.restore_states()
        had_others = self.replicas.broadcast(result.joined, has_run)
        self._adopt_parameters()
        self.reducers.divide_parameters()
        if self.reducers.delayed is not None:
            self.reducers.delayed.broadcast(self.replicas.params())
        if is_first or result.have_loaded:
            self.replicas.share_others(result.have_loaded)
        return has_run and had_others

    def _adopt_parameters(self) -> None:
        """Makes reducers for the parameters, which all ranks have now."""
        self.replicas.adopt()
        self._pass.begin_again()
        self.reducers.make(self.replicas.params())
