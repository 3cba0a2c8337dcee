"""What simulated ranks share: checks, costs, and what they do not have."""

from __future__ import annotations

import abc
from collections.abc import Sequence

import numpy as np

from renga import _communicators
from renga.communicators.native import Native, NativeWork
from renga.communicators.simulated.collectives import CollectiveCall
from renga.communicators.simulated.machine import Machine
from renga.communicators.transport.traffic import Traffic
from renga.core.types import Array
from renga.core.variable import as_array


class SimulatedRank(Native, abc.ABC):
    """Checks collectives as the compiled communicator does, and predicts their costs.

    Args:
        machine: the model of the network.
        rank: of this rank.
        nodes: on which node each rank is.
        traffic: to count in.
    """

    shares_memory = False

    def __init__(
        self, machine: Machine, rank: int, nodes: Sequence[int], traffic: Traffic
    ) -> None:
        self.machine = machine
        self.counts = traffic
        self.rank, self.size = rank, len(nodes)
        self.intra_size = nodes.count(nodes[rank])
        self.intra_rank = nodes[:rank].count(nodes[rank])
        distinct = list(dict.fromkeys(nodes))
        self.inter_rank, self.inter_size = distinct.index(nodes[rank]), len(distinct)

    def call(
        self,
        collective: str,
        xs: Sequence[object],
        ys: Sequence[object],
        op: str = "sum",
        communication_dtype: str = "",
        root: int | None = None,
        wait: bool = True,
        called: str = "",
    ) -> NativeWork | None:
        text = _communicators.check_call(
            collective,
            xs,
            ys,
            op,
            communication_dtype,
            root,
            called or collective,
            self.rank,
            self.size,
        )
        call = CollectiveCall(
            collective,
            text,
            self.machine,
            self.rank,
            self.size,
            [as_array(x) for x in xs],
            [as_array(y) for y in ys],
            op,
            communication_dtype,
            root,
        )
        return self._run(call, wait)

    @abc.abstractmethod
    def _run(self, call: CollectiveCall, wait: bool) -> NativeWork | None:
        """Moves the data, takes the time and counts."""

    def all_reduce_in_place(self, x: object, op: str) -> bool:
        """False: there is no faster path than ``call``."""
        return False

    def window(self, size: int) -> Array:
        return np.empty(size, np.uint8)

    def copy_to_window(self, xs: Sequence[Array]) -> list[Array]:
        return []

    def window_layout(self, xs: Sequence[Array]) -> int:
        return 0

    def set_algorithm(self, name: str) -> None:
        """Has no effect: the fastest is always predicted."""
        _communicators.check_algorithm(name)

    def window_of_peer(self, x: Array, local_rank: int) -> Array:
        """Raises ValueError: simulated ranks share no memory."""
        raise ValueError("window_of_peer: expected an array in a window")

    def network(self) -> tuple[float, float]:
        latency = self.machine.message(0, same_node=self.inter_size == 1)
        within = self.machine.node_bandwidth
        bandwidth = within if self.inter_size == 1 else self.machine.bandwidth
        return latency, 1 / bandwidth

    def traffic(self) -> Traffic:
        return self.counts.copy()
