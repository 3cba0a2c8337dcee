"""The communicator of a simulated rank."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, Callable, TypeVar

import numpy as np

from renga.communicators.array_communicator import as_operand
from renga.communicators.communicator import Communicator
from renga.communicators.simulated.machine import Machine
from renga.communicators.simulated.simulated_native import SimulatedNative
from renga.communicators.simulated.simulated_rank import SimulatedRank
from renga.communicators.transport.traffic import Traffic
from renga.core.types import Array

_T = TypeVar("_T")


class OnMachine(Communicator):
    """A communicator whose network is a :class:`Machine`."""

    is_simulated = True
    native: SimulatedRank

    @property
    def machine(self) -> Machine:
        """The model of the network."""
        return self.native.machine

    @property
    def traffic(self) -> Traffic:
        """Counts of this rank's communication so far."""
        return self.native.traffic()


class SimulatedCommunicator(OnMachine):
    """Computes shapes, and counts what it would communicate in ``traffic``.

    Args:
        rank: of this rank.
        size: the number of ranks.
        machine: the model of the network.
        parent: the traffic of the communicator that it was split from.
    """

    def __init__(
        self, rank: int, size: int, machine: Machine, parent: Traffic | None = None
    ) -> None:
        if not 0 <= rank < size:
            raise ValueError(f"simulated: expected a rank in [0, {size}), got {rank}")
        machine.check_ranks(size)
        super().__init__(SimulatedNative(rank, size, machine, parent))

    def split_by(self, color_of: Callable[[int], int]) -> SimulatedCommunicator:
        """The group of ranks with the same ``color_of(rank)``, in rank order."""
        members = [r for r in range(self.size) if color_of(r) == color_of(self.rank)]
        node = self.rank // self.machine.intra_size
        node_members = [r for r in members if r // self.machine.intra_size == node]
        parameters = {**vars(self.machine), "intra_size": len(node_members)}
        return type(self)(
            members.index(self.rank),
            len(members),
            Machine(**parameters),
            self.native.counts,
        )

    def _allgather(self, name: str, x: Array) -> tuple[Array, ...]:
        """This rank's array, repeated for each rank."""
        return tuple(self.all_gather(x))

    def alltoall(self, xs: Sequence[Array] | Array) -> tuple[Array, ...]:
        """The arrays that this rank sends, which it receives, too."""
        xs = self._operands("alltoall", xs)
        ys = [np.empty_like(x, order="C") for x in xs]
        self.native.call("all_to_allv", xs, ys, called="alltoall")
        return tuple(ys)

    def bcast(  # type: ignore[override]  # the base has the order of ChainerMN's base
        self, data: Array | None, root: int = 0, max_buf_len: int | None = None
    ) -> Array:
        """``data``, which is required on every rank here."""
        x = as_operand("bcast", data)
        self.native.call("broadcast", [x], [], root=root)
        return x

    def bcast_obj(self, obj: _T, max_buf_len: int | None = None, root: int = 0) -> _T:
        """``obj``, which is required on every rank here."""
        self.bcast(np.frombuffer(pickle.dumps(obj), np.uint8), root)
        return obj

    def _gather(self, name: str, x: Array, root: int) -> tuple[Array, ...] | None:
        """This rank's array, repeated for each rank, on the root."""
        root = self._root(name, root)
        gathered = self._allgather(name, x)
        return gathered if self.rank == root else None

    def scatter_obj(self, objs: Sequence[object], root: int = 0) -> Any:
        """Item ``rank`` of ``objs``, which is required on every rank here."""
        self._root("scatter_obj", root)
        self.scatter([np.frombuffer(pickle.dumps(obj), np.uint8) for obj in objs])
        return objs[self.rank]

    def scatter(self, xs: Sequence[Array] | Array | None, root: int = 0) -> Array:
        """Item ``rank`` of ``xs``, which is required on every rank here."""
        self._root("scatter", root)
        return self.alltoall(xs)[self.rank]  # type: ignore[arg-type]
