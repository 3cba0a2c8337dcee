"""The bucket hook that compresses gradients between nodes."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from renga.communicators.work import Work
from renga.core.serializer import AbstractSerializer, Deserializer
from renga.parallel.compression.state import State

if TYPE_CHECKING:
    from renga.communicators import Communicator
    from renga.core.types import Array
    from renga.parallel.compression.compressor import Compressor
    from renga.parallel.data.buckets import Bucket


class CompressionHook:
    """Averages buckets: sums on each node, compressed between the nodes.

    The first rank of each node keeps the states and communicates with those of the
    others. Every rank makes a hook.

    Args:
        compressor: its options are the same on all ranks.
        comm: of the ranks that train one model.
    """

    reduces_by_parameter = True  # whatever the buckets

    def __init__(self, compressor: Compressor, comm: Communicator) -> None:
        self.compressor = compressor
        self._comm = comm
        self._node: Any = None  # the ranks of this node, where there are several
        self._between: Any = comm  # one rank of each node; None on the others
        if comm.inter_size < comm.size:
            self._node = comm.split(comm.inter_rank, comm.rank)
            self._between = comm.split(0 if comm.intra_rank == 0 else None, comm.rank)
        # The node among those of this model, or of these shards of it.
        first = comm.bcast_obj(comm.origin.rank)
        self._place = [comm.inter_rank, comm.inter_size, first, comm.size]
        self._states: dict[str, State] = {}
        self._before: dict[str, State] = {}  # copies that a skipped step leaves
        self._agreed: set[str] = set()

    def reset_agreement(self) -> None:
        """Has node 0 send the shared states again; all ranks call it in one step."""
        self._agreed.clear()

    def end_step(self, is_skipped: bool) -> None:
        """Called after the update by what has been averaged.

        Args:
            is_skipped: whether there was none, as gradients of some rank have
                overflowed: what was sent for it is then kept, and its gradients are
                not.
        """
        if is_skipped:
            self._states.update(self._before)
        self._before.clear()

    def __call__(self, bucket: Bucket) -> Work:
        """Starts to average a bucket."""
        if bucket.gradients[0].dtype not in (numpy.float32, numpy.float16):
            work: Work = self._comm.all_reduce(bucket.gradients, "mean", wait=False)
            return work
        xs = [_as_float32(x) for x in bucket.gradients]
        if self._node is not None:
            self._node.all_reduce(xs, "sum", out=xs)
        started = Work(None, lambda: None)
        if self._between is not None:
            states = [self._state(name) for name in bucket.names]
            self._agree(states)
            if bucket.loss_scale is not None:
                self._before.update((s.name, copy.deepcopy(s)) for s in states)
            for state in states:
                state.rescale(self.compressor.scaled_states, bucket.loss_scale)
            started = self.compressor.reduce(xs, states, self._between)
            for state in states:
                state.count_step()
        return started.then(lambda _: self._finish(xs, bucket.gradients))

    def _finish(self, xs: list[Array], gradients: Sequence[Array]) -> list[Array]:
        """Means like ``gradients``, given the sums on the first ranks."""
        if self._node is not None:
            for x in xs:
                self._node.broadcast(x)
        for x in xs:
            numpy.divide(x, self._comm.size, out=x)
        return [x.astype(g.dtype, copy=False) for x, g in zip(xs, gradients)]

    def _state(self, name: str) -> State:
        state = self._states.get(name)
        if state is None:
            comm = self._comm
            state = State(name, comm.inter_rank, comm.inter_size)
            self._states[name] = state
        return state

    def _agree(self, states: Sequence[State]) -> None:
        """Overwrites the other nodes' shared states by those of node 0."""
        new = [state for state in states if state.name not in self._agreed]
        if new:
            keys = self.compressor.shared_states | State.COUNTS
            shared = [{k: s[k] for k in keys & s.keys()} for s in new]
            for state, arrays in zip(new, self._between.bcast_obj(shared)):
                for key in keys - arrays.keys():
                    state.pop(key, None)
                state.update(arrays)
            self._agreed.update(state.name for state in new)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the states of this rank's node.

        What another node has kept back, or a rank with other shards of the model, is
        not loaded: it is lost, as after a change of the number of nodes. States that
        all nodes share are loaded from any of them.
        """
        if isinstance(serializer, Deserializer):
            self._load(serializer)
            return
        keys = [(s.name, key) for s in self._states.values() for key in sorted(s)]
        serializer("node", numpy.array(self._place))
        serializer("keys", numpy.frombuffer(json.dumps(keys).encode(), numpy.uint8))
        for i, (name, key) in enumerate(keys):
            serializer(f"state_{i}", self._states[name][key])

    def _load(self, serializer: Any) -> None:
        self._states.clear()
        try:
            where = serializer("node", None)
        except KeyError:  # a file of training without compression
            return
        if where is None or self._between is None:
            return
        saved: list[int] = where.tolist()
        # Files of 0.1.0 tell the node alone.
        *place, ranks = saved + self._place[len(saved) :]
        is_own = place == self._place[:-1]
        is_of_model = place[2] == self._place[2]  # not of other shards of it
        shared = self.compressor.shared_states | State.COUNTS
        keys = json.loads(bytes(serializer("keys", None)))
        for i, (name, key) in enumerate(keys):
            if is_own or (is_of_model and key in shared):
                self._state(name)[key] = numpy.array(serializer(f"state_{i}", None))
        for state in self._states.values():  # of sums, which become means
            state.scale(self.compressor.scaled_states, self._comm.size / ranks)


def _as_float32(x: Array) -> Array:
    if not isinstance(x, numpy.ndarray):
        raise TypeError(
            f"compression: expected gradients on the CPU, got {type(x).__name__}"
        )
    return numpy.ascontiguousarray(x, numpy.float32).reshape(x.shape)
