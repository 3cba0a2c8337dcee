"""Which reducer averages which gradients of an optimizer's parameters."""

from __future__ import annotations

from collections.abc import Sequence

from renga.communicators import Communicator
from renga.core.link.distinct_params import DistinctParam, distinct_params
from renga.core.optimizer import Optimizer
from renga.core.variable import Variable
from renga.optimizer_hooks.gradient_noise import noise_of_rank_0
from renga.parallel.compression.hook import CompressionHook
from renga.parallel.data.bucketed_reducer import BucketedReducer
from renga.parallel.data.buckets import BucketHook
from renga.parallel.data.delayed_reducer import DelayedReducer
from renga.parallel.data.mean_reducer import MeanReducer
from renga.parallel.data.reducer import Reducer
from renga.parallel.data.sharded_states.state_sharding import StateSharding
from renga.parallel.data.synchronization import Eligibility
from renga.parallel.data.updating_reducer import UpdatingReducer
from renga.utils.meta import is_method_of


class Reducers:
    """The reducers of the parameters that all ranks have.

    Args:
        comm: the communicator.
        optimizer: of the parameters.
        zero_fill: whether a gradient that no rank has becomes zero, or stays None.
        sharding: of the optimizer's states; None if each rank keeps all.
        delayed: the only reducer, for double buffering.
    """

    def __init__(
        self,
        comm: Communicator,
        optimizer: Optimizer,
        zero_fill: bool,
        sharding: StateSharding | None,
        delayed: DelayedReducer | None,
    ) -> None:
        self._comm = comm
        self._optimizer = optimizer
        self._zero_fill = zero_fill
        self.sharding = sharding
        self.delayed = delayed
        self.hook: BucketHook | None = None
        self.bucketed: BucketedReducer | None = None
        self.sharded: UpdatingReducer | None = None

    def add_hook(self, hook: BucketHook) -> None:
        """Has ``hook`` average the buckets of the parameters that are made next.

        Raises:
            TypeError: if it cannot be called.
            RuntimeError: if there is one already.
            ValueError: if gradients are not averaged in buckets.
        """
        if not callable(hook):
            raise TypeError(f"add_bucket_hook: expected a function, got {hook!r}")
        if self.hook is not None:
            raise RuntimeError(
                f"add_bucket_hook: expected the only one, got a second: {hook!r}"
            )
        if not self._average_in_buckets():
            raise ValueError(
                "add_bucket_hook: expected a communicator without a "
                "multi_node_mean_grad of its own, and no double buffering, got "
                f"{'double buffering' if self.delayed else type(self._comm).__name__}"
            )
        self.hook = hook

    def _average_in_buckets(self) -> bool:
        """Whether the communicator has no way of averaging of its own."""
        is_ours = is_method_of(self._comm, Communicator, "multi_node_mean_grad")
        return self.delayed is None and is_ours

    def make(self, distinct: Sequence[DistinctParam]) -> None:
        """Makes reducers for the parameters, which all ranks have now."""
        self.bucketed = self.sharded = None
        if self._average_in_buckets():
            names, params = [d.name for d in distinct], [d.param for d in distinct]
            self.bucketed = BucketedReducer(
                self._comm, params, self._zero_fill, names, self.hook
            )
            if self.hook is None and self.sharding is None:
                self.sharded = UpdatingReducer(self._comm, self._optimizer, params)
        if isinstance(self.hook, CompressionHook):
            self.hook.reset_agreement()

    def update(self, reducer: Reducer) -> None:
        """Updates by a reducer's means; of sharded states, this rank's shard."""
        self._update(reducer)
        if isinstance(self.hook, CompressionHook):
            self.hook.end_step(is_skipped=not self._optimizer.is_safe_to_update())

    def _update(self, reducer: Reducer) -> None:
        sharding = self.sharding
        if sharding is None:
            with noise_of_rank_0(self._comm):
                self._optimizer.update(None)
            return
        if not sharding.is_divided:
            self._divide(sharding, self.bucketed)
        sharding.update(reducer)

    def keep_sums(self, reducer: Reducer, weight: float) -> bool:
        """Whether parameters have gradients after the update to which others add up.

        Args:
            reducer: of the step.
            weight: what it has multiplied this rank's gradients by.
        """
        if reducer is self.sharded:  # it leaves this rank's own
            return weight == 1
        return self.sharding is None and self.delayed is None

    def divide_parameters(self) -> None:
        """Divides parameters, if they are sharded; every rank calls it.

        They are divided before there are gradients, states after the first ones.
        """
        if self.sharding is not None and self.sharding.includes_parameters:
            self._divide(self.sharding, None)

    def require_own_graph(self, loss: Variable | None) -> None:
        """Raises RuntimeError for a loss of before the parameters were divided."""
        if self.sharding is not None:
            self.sharding.require_own_graph(loss)

    def _divide(
        self, sharding: StateSharding, bucketed: BucketedReducer | None
    ) -> None:
        params = [d.param for d in self._distinct()]
        sharding.divide(params, bucketed)
        scatter = sharding.reducer(params, self._zero_fill)
        if scatter is not None and self.bucketed and self.hook is None:
            self.bucketed = scatter

    def _distinct(self) -> list[DistinctParam]:
        return distinct_params(self._optimizer.target, include_uninit=False)

    def restore_states(self) -> None:
        """Gives this rank whole states, if they are sharded; every rank calls it."""
        if self.sharding is None:
            return
        self.sharding.restore()
        if self.bucketed is not None:  # it may scatter gradients to the shards
            self.make(self._distinct())

    def use_buffers(self, reducer: Reducer) -> None:
        """Has ``backward()`` write into buffers, once a first step has shown them."""
        if self.sharding is None and self.bucketed and reducer is self.bucketed:
            self.bucketed.use_buffers(self.sharded.buffers if self.sharded else {})

    def eligibility(self) -> Eligibility:
        """Whether this rank can take part in a sharded update, which begins now."""
        if self.sharding is not None:
            self.sharding.set_updating(True)
        if self.sharded is None:
            return Eligibility.NOT_POSSIBLE
        return self.sharded.eligibility()

    @property
    def of_loss(self) -> Reducer:
        """Of gradients that ``backward()`` computes."""
        return self.bucketed or self.of_caller

    @property
    def of_caller(self) -> Reducer:
        """Of gradients that the caller has set."""
        model = self._optimizer.target
        if self.delayed is not None:
            self.delayed.model = model
            return self.delayed
        if self.hook is not None and self.bucketed is not None:
            return self.bucketed
        return MeanReducer(self._comm, model, self._zero_fill)
