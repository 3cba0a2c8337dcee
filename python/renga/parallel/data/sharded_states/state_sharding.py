"""When the states of an optimizer are divided among ranks, and put together again."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from renga.communicators import Communicator
from renga.core.optimizer import Optimizer
from renga.core.optimizer.update_rule import RuleValues, require_own_rules
from renga.core.parameter import Parameter
from renga.core.variable import Variable
from renga.parallel.data import buckets
from renga.parallel.data.bucketed_reducer import BucketedReducer
from renga.parallel.data.reducer import Reducer
from renga.parallel.data.sharded_parameters.gathered_parameters import (
    GatheredParameters,
    may_gather,
)
from renga.parallel.data.sharded_parameters.node_parameters import (
    NodeParameters,
)
from renga.parallel.data.sharded_parameters.row_service import RowService
from renga.parallel.data.sharded_states.scatter_reducer import (
    ScatterReducer,
)
from renga.parallel.data.sharded_states.states import ShardedStates


class StateSharding:
    """Sharded states of an optimizer, from the first mean gradients on.

    Args:
        comm: the communicator.
        optimizer: whose states are divided.
        shard: what is divided besides them: only they ("states"), also the gradients
            between steps ("gradients"), also the parameters ("parameters").
    """

    def __init__(self, comm: Communicator, optimizer: Optimizer, shard: str) -> None:
        self._comm = comm
        self._optimizer = optimizer
        self._shard = shard
        self._node: Any = None  # the ranks of this node
        self._rows: RowService | None = None  # of parameters that are gathered
        self._lock = threading.RLock()  # of the places of parameters
        self._states: ShardedStates | None = None
        self._are_whole = False  # for a while, although they are divided

    @property
    def includes_parameters(self) -> bool:
        """Whether parameters are divided, too."""
        return self._shard == "parameters"

    @property
    def is_divided(self) -> bool:
        """Whether each rank has its shard of the states only."""
        return self._states is not None

    def fits(self) -> bool:
        """Whether the states, if divided, are divided as the hooks need them.

        Hooks for whole parameters may have been added since.
        """
        return self._states is None or self._states.fits()

    def divide(
        self, params: Sequence[Parameter], bucketed: BucketedReducer | None
    ) -> ShardedStates:
        """Divides the states, in the order of the reducer's buckets if there is one.

        Raises:
            ValueError: if another optimizer updates some of the parameters, too.
        """
        require_own_rules("shard", self._optimizer)
        if bucketed is not None:
            assigned = bucketed.buckets
        else:
            order = self._expected_order(params)
            assigned = buckets.assign_buckets(params, order, buckets.BUCKET_BYTES)
        self._states = self._make(params, assigned)
        return self._states

    def _make(
        self, params: Sequence[Parameter], assigned: Sequence[Sequence[int]]
    ) -> ShardedStates:
        comm, optimizer = self._comm, self._optimizer
        if not self.includes_parameters:
            return ShardedStates(comm, optimizer, params, assigned)
        own = optimizer, params, assigned
        if may_gather(comm, optimizer, params):
            self._rows = self._rows or RowService(comm)
            with self._lock:
                return GatheredParameters(comm, self._rows, self._lock, *own)
        self._node = self._node or comm.split(comm.inter_rank, comm.rank)
        with self._lock:
            return NodeParameters(comm, self._node, self._lock, *own)

    def _expected_order(self, params: Sequence[Parameter]) -> list[int]:
        """Of gradients: the reverse of that in which rank 0's model has parameters."""
        index = {id(param): i for i, param in enumerate(params)}
        model = self._optimizer.target
        order = [index[id(p)] for p in model.params(include_uninit=False)]
        agreed: list[int] = self._comm.bcast_obj(order[::-1])
        return agreed

    def reducer(
        self, params: Sequence[Parameter], zero_fill: bool
    ) -> ScatterReducer | None:
        """Of gradients of which each rank needs its shard only; None: it needs all."""
        communication_dtype = self._comm.get_config("allreduce_grad_dtype")
        if self._states is None or not self._states.cuts or communication_dtype:
            return None
        return ScatterReducer(
            self._comm, params, zero_fill, self._states, self._shard == "states"
        )

    def update(self, reducer: Reducer) -> None:
        """Updates by the mean gradients of a reducer."""
        assert self._states is not None
        if isinstance(reducer, ScatterReducer):
            self._states.update(reducer.arrivals())
        else:
            self._states.take_slices()
            self._states.update()

    def require_own_graph(self, loss: Variable | None) -> None:
        """Raises RuntimeError for a loss whose graph has parameters without numbers."""
        if self._states is not None:
            self._states.require_own_graph(loss)

    def set_updating(self, is_updating: bool) -> None:
        """Tells whether this rank is in an update, in which it waits for all ranks."""
        if self._rows is not None:
            self._rows.set_updating(is_updating)

    @contextlib.contextmanager
    def whole_states(self) -> Iterator[None]:
        """The scope in which the optimizer has whole states; every rank enters it."""
        states = self._states
        if states is None or self._are_whole:
            yield
            return
        states.restore()
        self._are_whole = True
        try:
            yield
        finally:
            self._are_whole = False
        if self._states is states:  # otherwise others have been loaded
            states.divide()

    def forget(self) -> None:
        """Drops this rank's shard, because others will be loaded."""
        if self._states is None:
            return
        self._states = None
        for param in self._optimizer.target.params():
            if param.update_rule is not None:
                param.update_rule.set_values(RuleValues(param.update_rule.t))
                param.update_rule.is_exclusive = False

    def restore(self) -> None:
        """Gives the optimizer whole states again; every rank calls it.

        Where rank 0 has dropped its shard, because it has loaded all states, all do.

        Raises:
            ValueError: if another rank has loaded states, but not rank 0.
        """
        self.set_updating(False)
        is_divided = self._comm.allgather_obj(self.is_divided)
        if is_divided[0] and not all(is_divided):
            raise ValueError(
                "update: expected rank 0 to load states that are sharded, got rank "
                f"{is_divided.index(False)} alone"
            )
        if self._states is not None and all(is_divided):
            self._states.restore()
            with self._lock:
                self._states.release()
            self._states = None
        self.forget()
