"""An optimizer that updates by the mean of all ranks' gradients."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Callable

from renga.communicators import Communicator
from renga.core.serializer import Deserializer
from renga.parallel.data.accumulation import Accumulation, gradients_kept
from renga.parallel.data.buckets import BucketHook
from renga.parallel.data.delayed_reducer import DelayedReducer
from renga.parallel.data.optimizers.caller_gradients import CallerGradients
from renga.parallel.data.reducer import Reducer
from renga.parallel.data.reducers import Reducers
from renga.parallel.data.replicas.first_pass import initialize
from renga.parallel.data.replicas.repeatable_pass import RepeatablePass
from renga.parallel.data.replicas.replicas import Replicas
from renga.parallel.data.sample_weighting import (
    GradientWeight,
    number_of_samples,
    warn_of_unknown_samples,
)
from renga.parallel.data.sharded_states.state_sharding import StateSharding
from renga.parallel.data.synchronization import (
    Eligibility,
    GradientSource,
    SyncRequest,
    SyncResult,
)
from renga.utils.argument import check_count

_UPDATES_PER_CHECK = 10  # in debug mode, of what has to be equal on all ranks


class MultiNodeOptimizer(CallerGradients):
    """Updates by the mean of all ranks' gradients.

    Gradients of a loss are reduced while ``backward()`` computes others. Where the
    ranks' numbers of samples differ, losses are weighted by them. Whenever a rank has
    parameters that the others do not have, or has loaded some, all get parameters and
    states of rank 0.

    A step is: synchronize (:class:`SyncRequest`), compute gradients, reduce them
    (:class:`Reducer`), update.
    """

    communicator: Communicator
    zero_fill: bool
    _reducers: Reducers

    def __init__(
        self,
        actual_optimizer: Any,
        communicator: Communicator,
        zero_fill: bool = True,
        shard: str | None = None,
        delayed: DelayedReducer | None = None,
    ) -> None:
        sharding = None
        if shard is not None:
            sharding = StateSharding(communicator, actual_optimizer, shard)
        vars(self).update(
            actual_optimizer=actual_optimizer,
            communicator=communicator,
            zero_fill=zero_fill,
            _samples=None,
            _mean_samples=None,  # of the last step; None before the first one
            _has_warned=False,
            _replicas=Replicas(communicator, actual_optimizer),
            _reducers=Reducers(
                communicator, actual_optimizer, zero_fill, sharding, delayed
            ),
            _updates=0,
            _accumulation=Accumulation(),
            _pass=RepeatablePass(),
            _shard=shard,
        )

    @property
    def is_sharded(self) -> bool:
        """Whether the arrays are in shared memory and each rank updates a shard."""
        sharded = self._reducers.sharded
        return sharded is not None and bool(sharded.buffers)

    def accumulate(self, count: int) -> MultiNodeOptimizer:
        """Has ``update(lossfun, ...)`` update once in ``count`` calls.

        Gradients of the other calls are kept on this rank, and those of the last one
        are sent while its ``backward()`` runs. All batches are weighted by their
        samples, as one batch would be that they form together. ``join()`` sends what
        has not been sent yet; a snapshot in between does not hold it.

        Args:
            count: of batches; ranks may have different numbers.

        Raises:
            RuntimeError: if gradients are waiting for further batches.
        """
        check_count("accumulate: count", count)
        waiting = self._accumulation.batches
        if waiting:
            raise RuntimeError(
                f"accumulate: expected no gradients in wait, got {waiting} batches"
            )
        vars(self)["_accumulation"] = Accumulation(count)
        return self

    def add_bucket_hook(self, hook: BucketHook) -> None:
        """Has ``hook`` average gradients instead of the communicator's all-reduce::

            def hook(bucket):
                return comm.all_reduce(bucket.gradients, "mean", wait=False)

        Buckets come in one order on all ranks, each as soon as ``backward()`` has
        computed its gradients. Updates are not sharded then.

        Args:
            hook: called with a :class:`~renga.parallel.data.Bucket`;
                returns a :class:`~renga.communicators.Work` whose result is the list
                of mean gradients, or anything with a method ``wait``. A hook with a
                method ``serialize`` is saved with the optimizer.

        Raises:
            TypeError: if it cannot be called.
            RuntimeError: if there is one already.
            ValueError: if the communicator averages gradients in its own way.
        """
        self._reducers.add_hook(hook)
        if self._replicas.has_begun:
            self._reducers.make(self._replicas.params())

    def update(
        self,
        lossfun: Callable[..., Any] | None = None,
        *args: Any,
        samples: int | None = None,
        **kwds: Any,
    ) -> None:
        """Updates by the mean of the ranks' gradients of ``lossfun(*args, **kwds)``.

        Without ``lossfun`` the gradients are those the parameters have; they are
        dropped where they belong to parameters that rank 0's have just replaced.

        Args:
            lossfun: gives a mean over this rank's samples.
            args, kwds: of ``lossfun``.
            samples: how many there are; by default :attr:`samples`, or else the length
                of the first axis of the arguments. Without ``lossfun``, and if it is
                known for no gradients, all ranks' gradients count alike.

        Raises:
            ValueError: if the ranks' optimizers have different settings.
        """
        if samples is not None:
            check_count("update: samples", samples, 0)

        def count() -> int | None:
            found = self.samples if samples is None else samples
            return number_of_samples(args, kwds) if found is None else found

        self._replicas.note_loads()
        self._replicas.require_all_loaded()
        if lossfun is None:
            self._update_by_external_gradients(count())
        else:
            self._update_by_loss(lambda: lossfun(*args, **kwds), count)

    def join(self) -> None:
        """Contributes zeros to the other ranks' updates until all ranks have joined.

        It is for a rank that has no more data while others may have some. Gradients
        of :meth:`accumulate` that wait for further batches are sent first. Afterwards
        each rank has all states, also where they were sharded.
        """
        if self._accumulation.batches:
            self._update_by_loss(lambda: None, lambda: 0, is_last=True)
        while True:
            is_first = self._mean_samples is None
            request = self._synchronize(GradientWeight(0), GradientSource.JOINED)
            result = request.wait()
            if result.all_joined:
                break
            starts_again = is_first or result.parameters_differ
            if result.parameters_differ:
                is_replaced = self._replace_parameters(lambda: None, result)
                if result.external_gradients and not is_first:
                    starts_again = is_replaced
            if starts_again:
                self._note_samples(result)
                continue
            self.target.cleargrads()
            if result.external_gradients:
                self._reduce_external_gradients(request, result)
            else:
                reducer = self._reducers.of_loss
                reducer.begin(request, self.actual_optimizer.loss_scale)
                self._reduce_and_update(reducer, result)
        self._reducers.restore_states()

    def _update_by_loss(
        self,
        forward: Callable[[], Any],
        count: Callable[[], int | None],
        is_last: bool = False,
    ) -> None:
        self._prepare_first_update(forward, count(), GradientSource.LOSS)
        accumulation: Accumulation = self._accumulation
        if not (is_last or accumulation.is_last):
            self._add_gradients(forward(), count())
            return
        kept = accumulation.batches
        while True:
            # With other parameters than rank 0's, a forward pass would be for nothing.
            is_new = self._has_new_parameters()
            loss = None if is_new else self._pass.run(self.target, forward)
            self._reducers.require_own_graph(loss)
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
        self._reduce_and_update(self._reducers.of_loss, result)
        accumulation.reset()

    def _prepare_first_update(
        self, forward: Callable[[], Any], samples: int | None, source: GradientSource
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
        vars(self)["_mean_samples"] = result.mean_samples or self._mean_samples or 1.0

    def _backward(self, loss: Any, samples: int | None, request: SyncRequest) -> None:
        reducer = self._reducers.of_loss
        reducer.begin(request, self.actual_optimizer.loss_scale)
        with contextlib.nullcontext() if samples == 0 else reducer.attached():
            self._add_gradients(loss, samples)

    def _add_gradients(self, loss: Any, samples: int | None) -> None:
        if samples is None and self.communicator.size > 1 and not self._has_warned:
            vars(self)["_has_warned"] = True
            warn_of_unknown_samples(self.communicator.rank)
        if not self._accumulation.batches:
            self.target.cleargrads()
        is_empty = samples == 0
        with gradients_kept(self.target) if is_empty else contextlib.nullcontext():
            self._accumulation.add(
                loss, samples, self._mean_samples, self.actual_optimizer.loss_scale
            )

    def _update_by_external_gradients(self, samples: int | None) -> None:
        source = GradientSource.EXTERNAL
        if self._prepare_first_update(lambda: None, samples, source):
            return
        weight = GradientWeight(samples, float(samples or 1))
        request = self._synchronize(weight, source)
        result = request.wait()
        if not (
            result.parameters_differ and self._replace_parameters(lambda: None, result)
        ):
            self._reduce_external_gradients(request, result)

    def _reduce_external_gradients(
        self, request: SyncRequest, result: SyncResult
    ) -> None:
        reducer = self._reducers.of_caller
        # Gradients of the caller are scaled if backward() was told so.
        scales = [param._loss_scale for param in self.target.params()]
        reducer.begin(request, next(filter(None, scales), None))
        self._reduce_and_update(reducer, result)

    def _reduce_and_update(self, reducer: Reducer, result: SyncResult) -> None:
        if result.settings_differ:
            self._replicas.require_equal_settings(result.joined)
        sharded = self._reducers.sharded
        if sharded is not None and result.eligibility is Eligibility.READY:
            reducer = sharded
        reducer.finalize(result.weight)
        if reducer.wait():
            self._reducers.update(reducer)
        if sharded is not None and result.eligibility is Eligibility.POSSIBLE:
            sharded.move_to_shared_memory()
        self._reducers.use_buffers(reducer)
        self._note_samples(result)
        vars(self)["_updates"] += 1
        if result.debugs and self._updates % _UPDATES_PER_CHECK == 0:
            self._replicas.require_equal_settings(result.joined)
            has_states = self._reducers.sharding is None
            self._replicas.require_equal_arrays(has_states)

    def serialize(self, serializer: Any) -> None:
        """Saves or loads the actual optimizer and the state of a bucket hook.

        Where all ranks load the same parameters, none are sent at the next update, and
        what else the ranks have loaded remains as it is. Sharded states are gathered
        before they are saved, so every rank has to save.
        """
        loads = isinstance(serializer, Deserializer)
        sharding = self._reducers.sharding
        if sharding is not None and loads:
            sharding.forget()
        with contextlib.nullcontext() if loads else self.whole_states():
            self.actual_optimizer.serialize(serializer)
        hook: Any = self._reducers.hook
        if hasattr(hook, "serialize"):
            hook.serialize(serializer["bucket_hook"])
        self._replicas.has_loaded |= loads

    def whole_states(self) -> contextlib.AbstractContextManager[None]:
        """A context in which this rank has whole states; every rank enters it."""
        sharding = self._reducers.sharding
        return contextlib.nullcontext() if sharding is None else sharding.whole_states()

    def _synchronize(
        self, weight: GradientWeight, source: GradientSource
    ) -> SyncRequest:
        has_loaded = self._replicas.has_loaded
        is_new = self._has_new_parameters()
        self._replicas.has_loaded = False
        sharding = self._reducers.sharding
        has_states = sharding is None or not sharding.is_divided
        return SyncRequest(
            self.communicator,
            is_new,
            self._replicas.checksum(has_states) if has_loaded else 0,
            self._replicas.fingerprint(),
            source,
            self._reducers.eligibility(),
            weight,
        )

    def _has_new_parameters(self) -> bool:
        """Whether there are parameters that the other ranks do not have yet."""
        if self._replicas.has_loaded:
            self._adopt_parameters()
        sharding = self._reducers.sharding
        return (sharding is not None and not sharding.fits()) or self._replicas.differ()

    def _replace_parameters(
        self, forward: Callable[[], Any], result: SyncResult
    ) -> bool:
        """Gives all ranks the parameters and states of rank 0; every rank calls it.

        Returns:
            Whether gradients set by the caller belong to other parameters than these.
        """
        comm = self.communicator
        shards = comm.allgather_obj(self._shard)
        if len(set(shards)) > 1:
            raise ValueError(f"update: expected one shard on all ranks, got {shards}")
        is_first = self._mean_samples is None
        initialize(comm, self._replicas.beginning(), forward, is_first)
        has_run = result.external_gradients
        had_others = self._broadcast_parameters(result.joined, has_run)
        if is_first or result.have_loaded:
            self._replicas.share_others(result.have_loaded)
        return has_run and had_others

    def _broadcast_parameters(self, joined: Sequence[bool], has_run: bool) -> bool:
        self._reducers.restore_states()
        had_others = self._replicas.broadcast(joined, has_run)
        self._adopt_parameters()
        self._reducers.divide_parameters()
        return had_others

    def _adopt_parameters(self) -> None:
        """Makes reducers for the parameters, which all ranks have now."""
        self._replicas.adopt()
        self._pass.begin_again()
        self._reducers.make(self._replicas.params())
