"""One rank's batches, on all ranks."""

from __future__ import annotations

from typing import Any

from renga.dataset import Iterator

# What training loops ask an iterator besides its batches, at the start.
_STATE = {
    "current_position": 0,
    "epoch": 0,
    "is_new_epoch": False,
    "epoch_detail": 0.0,
    "previous_epoch_detail": -1.0,
}
# What does not change.
_CONSTANTS = ("batch_size", "repeat", "_repeat")


def create_multi_node_iterator(
    actual_iterator: Any, communicator: Any, rank_master: int = 0
) -> Iterator:
    """An iterator that gives all ranks the batches of one rank's iterator.

    It is for models that lie on several ranks. Batches may be anything that can be
    pickled. What the master's iterator raises, it raises on all ranks.

    Args:
        actual_iterator: matters on the master only.
        communicator: the ranks.
        rank_master: whose batches they are.
    """
    master = communicator.rank == rank_master
    kind = _MultiNodeIteratorMaster if master else _MultiNodeIteratorSlave
    return kind(actual_iterator if master else None, communicator, rank_master)


class _MultiNodeIteratorMaster(Iterator):
    """Has the attributes of the actual iterator, on which setting one sets it."""

    def __init__(self, actual_iterator: Any, communicator: Any, root: int) -> None:
        vars(self).update(
            actual_iterator=actual_iterator, communicator=communicator, rank_master=root
        )
        constants = {
            name: getattr(actual_iterator, name)
            for name in _CONSTANTS
            if hasattr(actual_iterator, name)
        }
        communicator.bcast_obj((constants, self._state()), root=root)

    def _state(self) -> dict[str, Any]:
        known = {name: getattr(self.actual_iterator, name, None) for name in _STATE}
        return {k: _STATE[k] if v is None else v for k, v in known.items()}

    def __next__(self) -> Any:
        batch = error = None
        try:
            batch = next(self.actual_iterator)
        except Exception as raised:
            error = raised
        news = (batch, error, self._state())
        self.communicator.bcast_obj(news, root=self.rank_master)
        if error is not None:
            raise error
        return batch

    next = __next__

    def __getattr__(self, name: str) -> Any:
        if name == "actual_iterator":  # while a copy is being made
            raise AttributeError(name)
        return getattr(self.actual_iterator, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.actual_iterator, name, value)

    def serialize(self, serializer: Any) -> None:
        """Saves or loads the actual iterator."""
        self.actual_iterator.serialize(serializer)

    def finalize(self) -> None:
        """Ends the actual iterator."""
        self.actual_iterator.finalize()


class _MultiNodeIteratorSlave(Iterator):
    """Its attributes are those that the master's had after the same batch."""

    def __init__(self, _: None, communicator: Any, root: int) -> None:
        self.communicator = communicator
        self.rank_master = root
        constants, self._state = communicator.bcast_obj(None, root=root)
        vars(self).update(constants)

    def __next__(self) -> Any:
        news = self.communicator.bcast_obj(None, root=self.rank_master)
        batch, error, self._state = news
        if error is not None:
            raise error
        return batch

    next = __next__

    def __getattr__(self, name: str) -> Any:
        if name not in _STATE:
            raise AttributeError(f"multi-node iterator: no attribute {name!r}")
        value = self._state[name]
        return None if name == "previous_epoch_detail" and value < 0 else value

    def reset(self) -> None:
        """Starts over; the master has to do so, too."""
        self._state = dict(_STATE)

    def serialize(self, serializer: Any) -> None:
        """Saves or loads what the master's iterator told last."""
        self._state = {k: serializer(k, v) for k, v in self._state.items()}
