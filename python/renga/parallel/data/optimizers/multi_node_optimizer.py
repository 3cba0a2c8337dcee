"""An optimizer that updates by the mean of all ranks' gradients."""

from __future__ import annotations

import contextlib
from typing import Any, Callable

from renga.communicators import Communicator
from renga.core.optimizer import GradientMethod
from renga.core.serializer import AbstractSerializer, Deserializer, serialize_part
from renga.parallel.data.accumulation import Accumulation
from renga.parallel.data.buckets import BucketHook
from renga.parallel.data.delayed_reducer import DelayedReducer
from renga.parallel.data.optimizers.steps import Steps
from renga.parallel.data.optimizers.wrapped_optimizer import WrappedOptimizer
from renga.parallel.data.sample_weighting import IgnoredLabels, number_of_samples
from renga.parallel.data.synchronization import GradientSource
from renga.utils.argument import check_count

# In the names of what a hook saves, which differs between ranks.
BUCKET_HOOK = "bucket_hook"


class MultiNodeOptimizer(WrappedOptimizer):
    """Updates by the mean of all ranks' gradients.

    Gradients of a loss are reduced while ``backward()`` computes others. Where the
    ranks' numbers of samples differ, losses are weighted by them. Whenever a rank has
    parameters that the others do not have, or has loaded some, all get parameters and
    states of rank 0.
    """

    communicator: Communicator
    zero_fill: bool
    _steps: Steps
    _ignored: IgnoredLabels

    def __init__(
        self,
        actual_optimizer: GradientMethod,
        communicator: Communicator,
        zero_fill: bool = True,
        shard: str | None = None,
        delayed: DelayedReducer | None = None,
    ) -> None:
        vars(self).update(
            actual_optimizer=actual_optimizer,
            communicator=communicator,
            zero_fill=zero_fill,
            _samples=None,
            _ignored=IgnoredLabels(),
            _steps=Steps(communicator, actual_optimizer, zero_fill, shard, delayed),
        )

    def _is_bound(self) -> bool:
        steps = self._steps
        return steps.replicas.has_begun or steps.reducers.sharding is not None

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "samples":
            super().__setattr__(name, value)
            return
        if value is not None:
            check_count("samples", value, 0)
        vars(self)["_samples"] = value

    @property
    def samples(self) -> int | None:
        """How many samples this rank's next batches have; None: as their arguments say.

        To be set before ``update`` or by the loss function, where the arguments do not
        show it or where the loss is a mean over something else, such as the labels that
        are not ignored.
        """
        samples: int | None = vars(self)["_samples"]
        return samples

    @property
    def is_sharded(self) -> bool:
        """Whether the arrays are in shared memory and each rank updates a shard."""
        sharded = self._steps.reducers.sharded
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
        waiting = self._steps.accumulation.batches
        if waiting:
            raise RuntimeError(
                f"accumulate: expected no gradients in wait, got {waiting} batches"
            )
        self._steps.accumulation = Accumulation(count)
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
        self._steps.add_hook(hook)

    def prepare(self, has_loaded: bool = False) -> None:
        """Has all ranks begin with the parameters and states of rank 0.

        Every rank calls it before gradients are computed, which would otherwise be
        those of other parameters in the first step.

        Args:
            has_loaded: whether all ranks have got what one of them has loaded.

        Raises:
            ValueError: if gradients are accumulated, which only those of losses are.
        """
        if not self._steps.accumulation.is_last:
            raise ValueError(
                "accumulate: expected a count of 1 for gradients that the caller "
                "computes, as a pipeline does, which takes several batches for an "
                "update itself (PipelineUpdater(..., accumulate=count))"
            )
        self._steps.replicas.has_loaded |= has_loaded
        self._steps.prepare(lambda: None, None, GradientSource.EXTERNAL)

    def update(
        self,
        lossfun: Callable[..., object] | None = None,
        *args: object,
        samples: int | None = None,
        **kwds: object,
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

        self._steps.replicas.note_loads()
        self._steps.replicas.require_all_loaded()
        if lossfun is None:
            self._steps.by_caller(count())
            return
        if self.communicator.size > 1:
            lossfun = self._ignored.noted(lossfun)
        self._steps.by_loss(lambda: lossfun(*args, **kwds), count)
        told = self.samples if samples is None else samples
        self._ignored.warn(self.communicator.rank, told)

    def join(self) -> None:
        """Contributes zeros to the other ranks' updates until all ranks have joined.

        It is for a rank that has no more data while others may have some. Gradients
        of :meth:`accumulate` that wait for further batches are sent first. Afterwards
        each rank has all states, also where they were sharded.
        """
        while not self.contribute_zeros():
            pass

    def contribute_zeros(self) -> bool:
        """Takes part in one update of :meth:`join`; whether all ranks have joined."""
        if self._steps.accumulation.batches:
            self._steps.by_loss(lambda: None, lambda: 0, is_last=True)
            return False
        updates = self._steps.updates
        while self._steps.updates == updates:
            if self._steps.by_zeros():
                self._steps.reducers.restore_states()
                return True
        return False

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the actual optimizer and the state of a bucket hook.

        Where all ranks load the same parameters, none are sent at the next update, and
        what else the ranks have loaded remains as it is. Sharded states are gathered
        before they are saved, so every rank has to save.
        """
        loads = isinstance(serializer, Deserializer)
        sharding = self._steps.reducers.sharding
        if sharding is not None and loads:
            sharding.forget()
        with contextlib.nullcontext() if loads else self.whole_states():
            self.actual_optimizer.serialize(serializer)
        serialize_part(self._steps.reducers.hook, serializer, BUCKET_HOOK)
        self._steps.replicas.has_loaded |= loads

    def whole_states(self) -> contextlib.AbstractContextManager[None]:
        """A context in which this rank has whole states; every rank enters it."""
        sharding = self._steps.reducers.sharding
        return contextlib.nullcontext() if sharding is None else sharding.whole_states()
