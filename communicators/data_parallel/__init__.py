"""Data-parallel training on top of communicators."""

from __future__ import annotations

from typing import Any

from renga import _communicators
from renga.communicators.array_communicator import ArrayCommunicator

__all__ = ["sharded_update"]


def sharded_update(comm: ArrayCommunicator, updates: list[Any]) -> None:
    """Averages gradients over the ranks and applies updates, sharded over the ranks.

    Args:
        comm: a communicator whose ranks are on one node.
        updates: from ``_core.optimizers.deferred_updates``, the same on all ranks
            but for the gradients, which become their means. All arrays come from
            :meth:`ArrayCommunicator.copy_to_window`.

    Raises:
        ValueError: an array is not in a window, or there are several nodes.
        InvalidType: the ranks' updates differ in their arrays.
    """
    _communicators.sharded_update(comm._native, updates)
