"""An optimizer that updates by the mean of all ranks' gradients."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Callable

from renga.communicators import NativeCommunicator
from renga.configuration import no_backprop_mode, using_config
from renga.distributed.compression.hook import CompressionHook
from renga.distributed.data_parallel.accumulation import Accumulation
from renga.distributed.data_parallel.bucketed_reducer import BucketedReducer
from renga.distributed.data_parallel.checksum import checksum_of
from renga.distributed.data_parallel.mean_reducer import MeanReducer
from renga.distributed.data_parallel.reducer import Reducer
from renga.distributed.data_parallel.sample_weighting import number_of_samples
from renga.distributed.data_parallel.sharded_optimizer import (
    Eligibility,
    ShardedOptimizer,
)
from renga.distributed.data_parallel.sharded_states.state_sharding import StateSharding
from renga.distributed.data_parallel.synchronization import (
    GradientSource,
    SyncRequest,
    SyncResult,
)
from renga.distributed.optimizers.wrapped_optimizer import WrappedOptimizer
from renga.serializer import Deserializer
from renga.utils.argument import check_count
from renga.utils.methods import is_method_of

if TYPE_CHECKING:
    import numpy

    from renga.communicators import Communicator
    from renga.distributed.data_parallel.buckets import BucketHook
    from renga.parameter import Parameter


class MultiNodeOptimizer(WrappedOptimizer):
    """Updates by the mean of all ranks' gradients.

    Gradients of a loss are reduced while ``backward()`` computes others. Where the
    ranks' numbers of samples differ (the length of the first argument of ``update``
    that has one), gradients are weighted by them. Whenever a rank has parameters that
    the others do not have, all get those of rank 0.

    A step is: synchronize (:class:`SyncRequest`), compute gradients, reduce them
    (:class:`Reducer`), update.
    """

    communicator: Communicator
    zero_fill: bool
    _bucketed: BucketedReducer | None

    def __init__(
        self,
        actual_optimizer: Any,
        communicator: Communicator,
        zero_fill: bool = True,
        shard: str | None = None,
    ) -> None:
        sharding = None
        if shard is not None:
            sharding = StateSharding(communicator, actual_optimizer, shard)
        vars(self).update(
            actual_optimizer=actual_optimizer,
            communicator=communicator,
            zero_fill=zero_fill,
            _synchronized=None,  # names and identities of the parameters all ranks have
            _loaded=False,
            _bucketed=None,  # made with the parameters, as is _sharded
            _sharded=None,
            _bucket_hook=None,
            _accumulation=Accumulation(),
            _shard=shard,
            _sharding=sharding,
        )

    @property
    def is_sharded(self) -> bool:
        """Whether the arrays are in shared memory and each rank updates a shard."""
        return self._sharded is not None and bool(self._sharded.buffers)

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
            hook: called with a :class:`~renga.distributed.data_parallel.Bucket`;
                returns a :class:`~renga.communicators.Work` whose result is the list
                of mean gradients, or anything with a method ``wait``. A hook with a
                method ``serialize`` is saved with the optimizer.

        Raises:
            TypeError: if it cannot be called.
            RuntimeError: if there is one already.
            ValueError: if the communicator averages gradients in its own way.
        """
        if not callable(hook):
            raise TypeError(f"add_bucket_hook: expected a function, got {hook!r}")
        if self._bucket_hook is not None:
            raise RuntimeError(
                f"add_bucket_hook: expected the only one, got a second: {hook!r}"
            )
        if not self._averages_in_buckets():
            raise ValueError(
                "add_bucket_hook: expected a communicator without a "
                "multi_node_mean_grad of its own, and no double buffering, got "
                f"{type(self).__name__} of {type(self.communicator).__name__}"
            )
        vars(self)["_bucket_hook"] = hook
        self._make_reducers()

    def _averages_in_buckets(self) -> bool:
        """Whether the communicator has no way of averaging of its own."""
        return is_method_of(
            self.communicator, NativeCommunicator, "multi_node_mean_grad"
        )

    def update(
        self, lossfun: Callable[..., Any] | None = None, *args: Any, **kwds: Any
    ) -> None:
        """Updates by the mean of the ranks' gradients of ``lossfun(*args, **kwds)``.

        Without ``lossfun`` the gradients are those the parameters have; they are
        dropped where they belong to parameters that rank 0's have just replaced.
        """
        if lossfun is None:
            self._update_by_external_gradients()
        else:
            samples = number_of_samples(args, kwds)
            self._update_by_loss(lambda: lossfun(*args, **kwds), samples)

    def join(self) -> None:
        """Contributes zeros to the other ranks' updates until all ranks have joined.

        It is for a rank that has no more data while others may have some. Gradients
        of :meth:`accumulate` that wait for further batches are sent first.
        """
        if self._accumulation.batches:
            self._update_by_loss(lambda: None, 0, is_last=True)
        while True:
            request = self._synchronize(0, 1.0, GradientSource.JOINED)
            result = request.wait()
            if result.all_joined:
                return
            if result.external_gradients:
                if result.parameters_differ and self._replace_external_parameters():
                    continue
                self.target.cleargrads()
                self._reduce_external_gradients(request, result)
            elif result.parameters_differ:
                self._initialize(lambda: None)
                self._broadcast_parameters()
            else:
                self.target.cleargrads()
                reducer = self._loss_reducer()
                reducer.begin(request, self.actual_optimizer._loss_scale)
                self._reduce_and_update(reducer, result.weight, result)

    def _update_by_loss(
        self, forward: Callable[[], Any], samples: int | None, is_last: bool = False
    ) -> None:
        accumulation: Accumulation = self._accumulation
        if not (is_last or accumulation.is_last):
            self._keep_gradients(forward, samples)
            return
        while True:
            # With other parameters than rank 0's, a forward pass would be for nothing.
            loss = None if self._has_new_parameters() else forward()
            request = self._synchronize(
                *accumulation.with_batch(samples), GradientSource.LOSS
            )
            if not self._has_new_parameters():
                self._backward(loss, samples, request)
            result = request.wait()
            del loss  # the graph must not outlive its use
            if not result.parameters_differ:
                break
            self._initialize(forward)
            self._broadcast_parameters()
            accumulation.reset()  # gradients of other parameters
        self._reduce_and_update(self._loss_reducer(), result.weight, result)
        accumulation.reset()

    def _keep_gradients(self, forward: Callable[[], Any], samples: int | None) -> None:
        """Adds the gradients of a batch to those that wait for others."""
        if self._synchronized is None:  # on all ranks
            request = self._synchronize(samples, 1.0, GradientSource.LOSS)
            if request.wait().parameters_differ:
                self._initialize(forward)
                self._broadcast_parameters()
        self._add_gradients(forward(), samples)

    def _backward(self, loss: Any, samples: int | None, request: SyncRequest) -> None:
        reducer = self._loss_reducer()
        reducer.begin(request, self.actual_optimizer._loss_scale)
        with reducer.attached():
            self._add_gradients(loss, samples)

    def _add_gradients(self, loss: Any, samples: int | None) -> None:
        if not self._accumulation.batches:
            self.target.cleargrads()
        self._accumulation.add(loss, samples, self.actual_optimizer._loss_scale)

    def _update_by_external_gradients(self) -> None:
        request = self._synchronize(None, 1.0, GradientSource.EXTERNAL)
        result = request.wait()
        if not (result.parameters_differ and self._replace_external_parameters()):
            self._reduce_external_gradients(request, result)

    def _reduce_external_gradients(
        self, request: SyncRequest, result: SyncResult
    ) -> None:
        reducer = self._external_reducer()
        reducer.begin(request, self.actual_optimizer._loss_scale)
        self._reduce_and_update(reducer, 1.0, result)

    def _replace_external_parameters(self) -> bool:
        """Whether rank 0's parameters have replaced those that gradients belong to."""
        checksums = self.communicator.allgather_obj(checksum_of(self._arrays()))
        self._broadcast_parameters()
        return len(set(checksums)) > 1

    def _reduce_and_update(
        self, reducer: Reducer, weight: float, result: SyncResult
    ) -> None:
        if result.eligibility is Eligibility.READY:
            reducer = self._sharded
        reducer.finalize(weight)
        if reducer.wait():
            self._update(reducer)
        if result.eligibility is Eligibility.POSSIBLE:
            self._sharded.move_to_shared_memory()
        bucketed: BucketedReducer | None = self._bucketed
        if bucketed is not None and reducer is bucketed and self._sharding is None:
            bucketed.use_buffers(self._sharded.buffers if self._sharded else {})

    def _update(self, reducer: Reducer) -> None:
        """Updates by mean gradients; of sharded states, this rank's shard."""
        sharding: StateSharding | None = self._sharding
        if sharding is None:
            self.actual_optimizer.update(None)
            return
        if not sharding.is_divided:
            params = [param for _, param in self._named_params()]
            sharding.divide(params, self._bucketed)
            scatter = sharding.reducer(params, self.zero_fill)
            if scatter is not None and self._bucketed and self._bucket_hook is None:
                vars(self)["_bucketed"] = scatter
        sharding.update(reducer)

    def serialize(self, serializer: Any) -> None:
        """Saves or loads the actual optimizer and the state of a bucket hook.

        Where all ranks load the same parameters, none are sent at the next update, and
        what else the ranks have loaded remains as it is. Sharded states are gathered
        before they are saved, so every rank has to save.
        """
        loads = isinstance(serializer, Deserializer)
        with contextlib.ExitStack() as scope:
            if self._sharding is not None and loads:
                self._sharding.forget()
            elif self._sharding is not None:
                scope.enter_context(self._sharding.whole_states())
            self.actual_optimizer.serialize(serializer)
        if hasattr(self._bucket_hook, "serialize"):
            self._bucket_hook.serialize(serializer["bucket_hook"])
        vars(self)["_loaded"] = loads

    def _synchronize(
        self, samples: int | None, share: float, source: GradientSource
    ) -> SyncRequest:
        is_new = self._has_new_parameters()
        checksum = checksum_of(self._arrays()) if self._loaded else 0
        vars(self)["_loaded"] = False
        eligibility = Eligibility.NOT_POSSIBLE
        if self._sharded is not None:
            eligibility = self._sharded.eligibility()
        return SyncRequest(
            self.communicator, is_new, checksum, samples, source, eligibility, share
        )

    def _has_new_parameters(self) -> bool:
        """Whether there are parameters that the other ranks do not have yet."""
        if self._loaded:
            self._adopt_parameters()
        return bool(self._synchronized != self._identities())

    def _named_params(self) -> list[tuple[str, Parameter]]:
        """The parameters that have arrays, in the order of names."""
        if self.target is None:
            raise RuntimeError("update: expected setup(model) before, got no model")
        return sorted(self.target.namedparams(include_uninit=False))

    def _arrays(self) -> list[numpy.ndarray]:
        return [param.array for _, param in self._named_params()]

    def _identities(self) -> list[tuple[str, int]]:
        return [(name, id(param)) for name, param in self._named_params()]

    def _broadcast_parameters(self) -> None:
        shards = self.communicator.allgather_obj(self._shard)
        if len(set(shards)) > 1:
            raise ValueError(f"update: expected one shard on all ranks, got {shards}")
        if self._sharding is not None:
            self._sharding.restore()
        self.communicator.bcast_data(self.target)
        self._adopt_parameters()

    def _adopt_parameters(self) -> None:
        """Makes reducers for the parameters, which all ranks have now."""
        vars(self).update(_synchronized=self._identities())
        self._make_reducers()

    def _make_reducers(self) -> None:
        bucketed = sharded = None
        hook = self._bucket_hook
        if self._averages_in_buckets() and self._synchronized is not None:
            comm, named = self.communicator, self._named_params()
            names, params = [name for name, _ in named], [param for _, param in named]
            bucketed = BucketedReducer(comm, params, self.zero_fill, names, hook)
            if hook is None and self._sharding is None:
                sharded = ShardedOptimizer(comm, self.actual_optimizer, params)
        if isinstance(hook, CompressionHook):
            hook.reset_agreement()
        vars(self).update(_bucketed=bucketed, _sharded=sharded)

    def _loss_reducer(self) -> Reducer:
        """Of gradients that ``backward()`` computes."""
        return self._bucketed or self._external_reducer()

    def _external_reducer(self) -> Reducer:
        """Of gradients that the caller has set."""
        if self._bucket_hook is not None and self._bucketed is not None:
            return self._bucketed
        return MeanReducer(self.communicator, self.target, self.zero_fill)

    def _initialize(self, forward: Callable[[], Any]) -> None:
        """Has a forward pass in test mode initialize parameters that have no shape."""
        missing = any(not param.is_initialized for param in self.target.params())
        # Other groups may take part in the forward pass (dual parallelism), and must
        # not depend on whether parameters of this one have a shape.
        others_wait = self._synchronized is None and self.communicator.is_subgroup
        if any(self.communicator.allgather_obj(missing)) or others_wait:
            with no_backprop_mode(), using_config("train", False):
                forward()
