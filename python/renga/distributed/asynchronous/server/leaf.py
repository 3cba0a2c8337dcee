"""Workers that push as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from renga.communicators import Communicator
    from renga.distributed.asynchronous.packed import PackedParameters


class Leaf:
    """A group of workers, the first of which exchanges messages with the servers.

    Args:
        comm: of the group.
    """

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm

    @property
    def is_first(self) -> bool:
        """Whether this worker pushes."""
        return self._comm.rank == 0

    def share(self, packed: PackedParameters) -> None:
        """Gives all workers the parameters of the first."""
        if self._comm.size > 1:
            flats = packed.pack()
            for flat in flats:
                self._comm.broadcast(flat)
            packed.unpack(flats)

    def average_gradients(self, model: Any) -> None:
        """Replaces the gradients by the workers' mean."""
        if self._comm.size > 1:
            self._comm.multi_node_mean_grad(model, zero_fill=True)

    def wait(self) -> None:
        """Waits for all workers."""
        if self._comm.size > 1:
            self._comm.barrier()
