"""One rank's batches, on all ranks."""

from __future__ import annotations

import contextlib
from typing import Any

from renga.communicators import Communicator
from renga.core.serializer import AbstractSerializer
from renga.dataset import Iterator
from renga.utils.exceptions import CallOutcome

# Initial values of the attributes that training loops read.
_STATE = {
    "current_position": 0,
    "epoch": 0,
    "is_new_epoch": False,
    "epoch_detail": 0.0,
    "previous_epoch_detail": -1.0,
}
# Attributes that do not change.
_CONSTANTS = ("batch_size", "repeat", "_repeat")


def create_multi_node_iterator(
    actual_iterator: Iterator | None, communicator: Communicator, rank_master: int = 0
) -> Iterator:
    """An iterator that gives all ranks the batches of one rank's iterator.

    It is for models whose links are on several ranks. Batches may be any objects that
    can be pickled. Exceptions of the master's iterator are raised on all ranks.

    Args:
        actual_iterator: used on the master only.
        communicator: the communicator.
        rank_master: the rank whose batches they are.
    """
    if communicator.rank == rank_master:
        return _MultiNodeIteratorMaster(actual_iterator, communicator, rank_master)
    return _MultiNodeIteratorSlave(communicator, rank_master)


class _MultiNodeIteratorMaster(Iterator):
    """Has the attributes of the actual iterator, on which setting one sets it."""

    def __init__(
        self, actual_iterator: Any, communicator: Communicator, root: int
    ) -> None:
        vars(self).update(
            actual_iterator=actual_iterator, communicator=communicator, rank_master=root
        )
        constants = {
            name: getattr(actual_iterator, name)
            for name in _CONSTANTS
            if hasattr(actual_iterator, name)
        }
        with contextlib.suppress(AttributeError, TypeError):
            constants["dataset_size"] = max(len(actual_iterator.dataset), 1)
        communicator.bcast_obj((constants, self._progress()), root=root)

    def _progress(self) -> tuple[dict[str, Any], Any]:
        """The attributes, and the order of the examples if an epoch begins."""
        state = {name: getattr(self.actual_iterator, name, None) for name in _STATE}
        state = {k: _STATE[k] if v is None else v for k, v in state.items()}
        begins = state["is_new_epoch"] or state["epoch_detail"] == 0
        own = getattr(self.actual_iterator, "_state", None)
        return state, getattr(own, "order", None) if begins else None

    def __next__(self) -> Any:
        outcome = CallOutcome(next, self.actual_iterator)
        self.communicator.bcast_obj((outcome, self._progress()), root=self.rank_master)
        return outcome.get()

    def __getattr__(self, name: str) -> Any:
        if name == "actual_iterator":  # while a copy is being made
            raise AttributeError(name)
        return getattr(self.actual_iterator, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.actual_iterator, name, value)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the actual iterator."""
        self.actual_iterator.serialize(serializer)

    def finalize(self) -> None:
        """Ends the actual iterator."""
        self.actual_iterator.finalize()


class _MultiNodeIteratorSlave(Iterator):
    """Has the attributes that the master's iterator had after the same batch."""

    def __init__(self, communicator: Communicator, root: int) -> None:
        self.communicator = communicator
        self.rank_master = root
        self._order = None
        constants, progress = communicator.bcast_obj(None, root=root)
        self._follow(*progress)
        vars(self).update(constants)

    def _follow(self, state: dict[str, Any], order: Any) -> None:
        self._attributes = state
        if order is not None:
            self._order = order

    def __next__(self) -> Any:
        outcome, progress = self.communicator.bcast_obj(None, root=self.rank_master)
        self._follow(*progress)
        return outcome.get()

    def __getattr__(self, name: str) -> Any:
        if name not in _STATE:
            raise AttributeError(f"multi-node iterator: no attribute {name!r}")
        value = self._attributes[name]
        return None if name == "previous_epoch_detail" and value < 0 else value

    def reset(self) -> None:
        """Starts again; the master has to do so, too."""
        self._attributes = dict(_STATE)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the last known attributes and order of the master's."""
        if self._order is not None:
            self._order = serializer("order", self._order)
        elif hasattr(self, "dataset_size"):
            with contextlib.suppress(KeyError):  # a file of 0.1.0 or of Chainer
                serializer("dataset_size", self.dataset_size)
        try:
            self._attributes = {
                k: serializer(k, v) for k, v in self._attributes.items()
            }
        except KeyError:  # a file of a plain iterator
            state = {
                k: serializer(k, v)
                for k, v in self._attributes.items()
                if k != "epoch_detail"
            }
            detail = state["epoch"] + state["current_position"] / self.dataset_size
            self._attributes = {**state, "epoch_detail": detail}
