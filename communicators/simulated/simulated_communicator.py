"""The communicator of a rank whose fellows are not there."""

from __future__ import annotations

import pickle
from typing import Any, Callable

import numpy as np

from renga.communicators.communicator import Communicator
from renga.communicators.simulated.machine import Machine
from renga.communicators.simulated.network import Network
from renga.communicators.simulated.traffic import Traffic


class SimulatedCommunicator(Communicator):
    """Keeps shapes, and counts in ``traffic`` what it would have communicated."""

    def __init__(self, rank: int, size: int, machine: Machine) -> None:
        if not 0 <= rank < size:
            raise ValueError(f"simulated: expected a rank in [0, {size}), got {rank}")
        if size > machine.intra_size and size % machine.intra_size:
            raise ValueError(
                f"simulated: expected nodes of {machine.intra_size} ranks to share "
                f"{size} ranks evenly"
            )
        super().__init__(Network(rank, size, machine))

    @property
    def machine(self) -> Machine:
        """How long messages take."""
        return self._native.machine

    @property
    def traffic(self) -> Traffic:
        """What has been communicated so far."""
        return self._native.traffic

    def split(self, color: int | None, key: int) -> Any:
        """Refuses: what the other ranks ask for cannot be known."""
        raise RuntimeError(
            "simulated: expected split_by, which takes all ranks' colors"
        )

    def split_by(self, color_of: Callable[[int], int]) -> SimulatedCommunicator:
        """The group of ranks whose ``color_of(rank)`` is this one's, in their order."""
        members = [r for r in range(self.size) if color_of(r) == color_of(self.rank)]
        node = self.rank // self.machine.intra_size
        neighbours = [r for r in members if r // self.machine.intra_size == node]
        numbers = {**vars(self.machine), "intra_size": len(neighbours)}
        group = type(self)(members.index(self.rank), len(members), Machine(**numbers))
        group._native.traffic = self.traffic
        return group

    def _allgather(self, name: str, x: np.ndarray) -> tuple[np.ndarray, ...]:
        """This rank's array, once for each rank."""
        return tuple(self.all_gather(x))

    def alltoall(self, xs: Any) -> tuple[np.ndarray, ...]:
        """What this rank sends: it receives as much."""
        xs = [np.asarray(x) for x in xs]
        if len(xs) != self.size:
            raise ValueError(f"alltoall: expected {self.size} arrays, got {len(xs)}")
        ys = [np.empty_like(x, order="C") for x in xs]
        self._native.exchange("alltoall", None, xs, ys)
        return tuple(ys)

    def bcast(
        self, data: Any, max_buf_len: int | None = None, root: int = 0
    ) -> np.ndarray:
        """``data``, which every rank has to have here."""
        data = np.asarray(data)
        self._native.broadcast(data, root)
        return data

    def bcast_obj(self, obj: Any, max_buf_len: int | None = None, root: int = 0) -> Any:
        """``obj``, which every rank has to have here."""
        self._native.broadcast(np.frombuffer(pickle.dumps(obj), np.uint8), root)
        return obj

    def _gather(
        self, name: str, x: np.ndarray, root: int
    ) -> tuple[np.ndarray, ...] | None:
        """This rank's array, once for each rank, on the root."""
        root = self._root(name, root)
        gathered = self._allgather(name, x)
        return gathered if self.rank == root else None

    def scatter_obj(self, objs: Any, root: int = 0) -> Any:
        """This rank's object of ``objs``, which every rank has to have here."""
        self._root("scatter_obj", root)
        self.scatter([np.frombuffer(pickle.dumps(obj), np.uint8) for obj in objs])
        return objs[self.rank]

    def scatter(self, xs: Any, root: int = 0) -> np.ndarray:
        """This rank's array of ``xs``, which every rank has to have here."""
        self._root("scatter", root)
        return self.alltoall(xs)[self.rank]
