"""Parameters of which the ranks of a node keep one copy, beside sharded states."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import numpy
from numpy.lib.stride_tricks import as_strided

from renga import _core
from renga.communicators import Communicator
from renga.core.optimizer import Optimizer
from renga.core.parameter import Parameter
from renga.core.types import Array
from renga.parallel.data.sharded_parameters.node_parameter import place
from renga.parallel.data.sharded_states.held_arrays import is_at
from renga.parallel.data.sharded_states.layout import ShardLayout
from renga.parallel.data.sharded_states.states import (
    ShardedStates,
    require_own_memory,
)

_PAGE_BYTES = 4096  # the ranks' parts of a window begin at pages


class NodeParameters(ShardedStates):
    """Sharded states, and parameters of which the ranks of a node keep one copy.

    It is in memory that they share. A rank updates its pieces where all ranks of its
    node read them: nothing is gathered but the pieces of other nodes. What Python code
    does to the array of a parameter it does to a copy of its own rank, of which the
    next update takes this rank's pieces. A rank that shares no memory keeps a copy.

    Every rank makes one at the same time.

    Args:
        comm: the communicator.
        node: of the ranks of this node.
        lock: that of the parameters' places.
        optimizer, params, buckets: those of :class:`ShardedStates`.

    Source: Wang et al., ZeRO++: extremely efficient collective communication for giant
    model training, arXiv 2306.10209 (a partition of the parameters on each node).
    """

    def __init__(
        self,
        comm: Communicator,
        node: Communicator,
        lock: AbstractContextManager[object],
        optimizer: Optimizer,
        params: Sequence[Parameter],
        buckets: Sequence[Sequence[int]],
    ) -> None:
        self._node = node
        self._is_shared = (
            node.size > 1
            and node.shares_memory()
            and all(param.xp is numpy for param in params)
        )
        self._lock = lock
        here = [comm.rank]
        if self._is_shared:
            here = node.allgather_obj(comm.rank)
        self._elsewhere = [r for r in range(comm.size) if r not in here]
        self._is_first = here[0] == comm.rank  # of those that share memory
        super().__init__(comm, optimizer, params, buckets)
        if self._is_first:
            for r in self._elsewhere:
                self._write_pieces(r)
        self._place_arrays()
        # This frees the memory of the arrays that the parameters had.
        _core.empty_cache(_core.host_name())

    def new_flat(self, layout: ShardLayout) -> Array:
        """A new array of all rows that all ranks of this node read and write."""
        if not self._is_shared:
            return layout.empty()
        node, dtype = self._node, layout.dtype
        size = self._comm.size * layout.row * dtype.itemsize
        part = max(1, -(-size // (node.size * _PAGE_BYTES))) * _PAGE_BYTES
        own = node.window((part,), numpy.uint8)
        if not node.window_layout([own]):
            raise MemoryError(
                f"shard: expected {part * node.size} bytes of memory that the ranks of "
                "a node share, got less"
            )
        # The parts of the ranks follow each other.
        memory = as_strided(node.window_of_peer(own, 0), (part * node.size,))
        return memory[:size].view(dtype).reshape(self._comm.size, layout.row)

    def _pairs_of_rows(self) -> list[tuple[Array, Array]]:
        return []

    def _adopt_arrays(self) -> None:
        if not all(is_at(self._params[i], view) for i, view in self._views.items()):
            require_own_memory(self._params)
        self._wait_for_node()  # others may still compute with the parameters
        self._write_pieces(self._comm.rank)

    def _gather_all(self) -> None:
        if not self.cuts:  # copies of whole parameters were updated
            self._wait_for_node()  # others' hooks may still read the present ones
            self._write_pieces(self._comm.rank)
        if not self._is_shared:
            self._gather()
        elif self._elsewhere:
            for flat in self._flats:
                rows = self._comm.all_gather(flat[self._comm.rank])
                if self._is_first:
                    flat[self._elsewhere] = rows[self._elsewhere]
        self._place_arrays()

    def _place_arrays(self) -> None:
        self._wait_for_node()  # all pieces are written
        lock = self._lock if self._is_shared else None
        with self._lock:
            for i, view in self._views.items():
                place(self._params[i], view, lock)

    def _wait_for_node(self) -> None:
        if self._is_shared:
            self._node.barrier()
