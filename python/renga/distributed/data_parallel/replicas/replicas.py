"""Which parameters all ranks have, and how they get those of rank 0."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from renga.distributed.data_parallel.replicas.checksum import checksum_of
from renga.distributed.data_parallel.replicas.settings import (
    fingerprint_of,
    require_equal_settings,
    settings_of,
)
from renga.distributed.data_parallel.replicas.states import (
    broadcast_states,
    require_equal_arrays,
    states_checksum,
)
from renga.link.distinct_params import DistinctParam, distinct_params

if TYPE_CHECKING:
    from renga.communicators import Communicator


class Replicas:
    """The parameters, states and settings of an optimizer on all ranks.

    Args:
        comm: of the ranks that train one model.
        optimizer: which each of them has.
    """

    def __init__(self, comm: Communicator, optimizer: Any) -> None:
        self._comm = comm
        self._optimizer = optimizer
        self._shared: list[tuple[tuple[str, ...], int]] | None = None
        self.has_loaded = False  # from a file, since the last step

    @property
    def are_shared(self) -> bool:
        """Whether all ranks have had the same parameters."""
        return self._shared is not None

    def params(self) -> list[DistinctParam]:
        """The parameters that have arrays, each once, in the order of names.

        Raises:
            RuntimeError: if the optimizer has no model.
        """
        model = self._optimizer.target
        if model is None:
            raise RuntimeError("update: expected setup(model) before, got no model")
        return distinct_params(model, include_uninit=False)

    def differ(self) -> bool:
        """Whether there are parameters that the other ranks do not have yet."""
        return self._shared != _identities(self.params())

    def adopt(self) -> None:
        """Notes that all ranks have the present parameters."""
        self._shared = _identities(self.params())

    def fingerprint(self) -> int:
        """Of the settings: cheap, and different where they are, mostly."""
        model = self._optimizer.target
        return fingerprint_of(self._optimizer, model.params(include_uninit=False))

    def checksum(self) -> int:
        """Of parameters, states and settings."""
        params = self.params()
        settings = repr(sorted(settings_of(self._optimizer, params).items()))
        states = states_checksum(self._optimizer, params)
        return zlib.crc32(settings.encode(), states ^ self.checksum_of_params())

    def checksum_of_params(self) -> int:
        """Of the parameters' arrays."""
        return checksum_of(distinct.param.array for distinct in self.params())

    def broadcast(self, joined: Sequence[bool]) -> None:
        """Gives all ranks the parameters and states of rank 0; every rank calls it.

        Args:
            joined: by rank, whether it has no more data.

        Raises:
            ValueError: if the ranks' settings differ.
            RuntimeError: if their models do.
        """
        params = self.params()
        self.require_equal_settings(joined)
        self._comm.bcast_data(self._optimizer.target)
        broadcast_states(self._comm, self._optimizer, params)

    def require_equal_settings(self, joined: Sequence[bool]) -> None:
        """Checks that the ranks' settings are equal; every rank calls it.

        Raises:
            ValueError: if they differ.
        """
        require_equal_settings(self._comm, self._optimizer, self.params(), joined)

    def require_equal_arrays(self, with_states: bool) -> None:
        """Checks that all ranks have the same arrays; every rank calls it.

        Args:
            with_states: whether each rank has all states.

        Raises:
            ValueError: if they differ.
        """
        require_equal_arrays(self._comm, self.params(), with_states)


def _identities(params: Sequence[DistinctParam]) -> list[tuple[tuple[str, ...], int]]:
    return [(names, id(param)) for param, names in params]
