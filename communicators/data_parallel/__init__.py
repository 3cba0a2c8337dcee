"""Data-parallel training on top of communicators."""

from __future__ import annotations

from collections.abc import Sequence

from renga import _communicators, _core
from renga.communicators.array_communicator import ArrayCommunicator
from renga.communicators.communicator import Communicator

__all__ = ["sharded_update"]


def sharded_update(
    comm: Communicator, updates: Sequence[_core.optimizers.Update]
) -> None:
    """Averages gradients over the ranks and applies updates, sharded over the ranks.

    Args:
        comm: a communicator whose ranks are on one node.
        updates: from ``_core.optimizers.deferred_updates``, the same on all ranks
            but for the gradients, which become their means. All arrays come from
            :meth:`ArrayCommunicator.copy_to_window`.

    Raises:
        TypeError: if ``comm`` is a communicator of the user's own.
        ValueError: if an array is not in a window, or there are several nodes.
        InvalidType: if the ranks' updates differ in their arrays.
    """
    if not isinstance(comm, ArrayCommunicator):
        raise TypeError(
            f"sharded_update: expected renga's communicator, got {type(comm)}"
        )
    _communicators.sharded_update(comm.native, updates)
