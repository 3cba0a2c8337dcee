"""Which parameters all ranks have, and how they get those of rank 0."""

from __future__ import annotations

import contextlib
import weakref
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
    from renga.link import Link
    from renga.parameter import Parameter


# In the order in which they were made, which is the same on all ranks.
_of_comm: weakref.WeakKeyDictionary[Any, list[weakref.ref[Replicas]]] = (
    weakref.WeakKeyDictionary()
)


class Replicas:
    """The parameters, states and settings of an optimizer on all ranks.

    Args:
        comm: of the ranks that train one model.
        optimizer: which each of them has.
    """

    def __init__(self, comm: Communicator, optimizer: Any) -> None:
        self._comm = comm
        self._optimizer = optimizer
        self._shared: list[tuple[str, int]] | None = None  # names and identities
        self._shared_params: list[Parameter] = []
        self.has_loaded = False  # from a file, since the last step
        others = [ref for ref in _of_comm.get(comm, []) if ref() is not None]
        _of_comm[comm] = [*others, weakref.ref(self)]

    @property
    def are_shared(self) -> bool:
        """Whether all ranks have had the same parameters."""
        return self._shared is not None

    def params(self) -> list[DistinctParam]:
        """The parameters that have arrays, each once, in the order of names."""
        return distinct_params(self._model, include_uninit=False)

    def _identities(self) -> list[tuple[str, int]]:
        named = self._model.namedparams(include_uninit=False)
        return [(name, id(param)) for name, param in named]

    @property
    def _model(self) -> Link:
        if self._optimizer.target is None:
            raise RuntimeError("update: expected setup(model) before, got no model")
        model: Link = self._optimizer.target
        return model

    def differ(self) -> bool:
        """Whether there are parameters that the other ranks do not have yet."""
        return self._shared != self._identities()

    def adopt(self) -> None:
        """Notes that all ranks have the present parameters."""
        self._shared = self._identities()
        self._shared_params = [distinct.param for distinct in self.params()]

    def fingerprint(self) -> int:
        """Of the settings for parameters that all ranks have; different, mostly."""
        return fingerprint_of(self._optimizer, self._shared_params)

    def checksum(self) -> int:
        """Of parameters, states and settings."""
        params = self.params()
        settings = repr(sorted(settings_of(self._optimizer, params).items()))
        states = states_checksum(self._optimizer, params)
        return zlib.crc32(settings.encode(), states ^ self.checksum_of_params())

    def checksum_of_params(self) -> int:
        """Of the parameters' arrays."""
        return checksum_of(distinct.param.array for distinct in self.params())

    def broadcast(self, joined: Sequence[bool], have_same_params: bool = False) -> None:
        """Gives all ranks the parameters and states of rank 0; every rank calls it.

        Args:
            joined: by rank, whether it has no more data.
            have_same_params: whether all ranks have the same parameters already, so
                that persistent arrays stay each rank's own.

        Raises:
            ValueError: if the ranks' settings differ.
            RuntimeError: if their models do.
        """
        params = self.params()
        self.require_equal_settings(joined)
        if not have_same_params:
            self._comm.bcast_data(self._optimizer.target)
        broadcast_states(self._comm, self._optimizer, params)

    def broadcast_others(self, have_loaded: bool) -> None:
        """The same for parameters of other optimizers' models; every rank calls it.

        A loss may use them before their own optimizer's first update.

        Args:
            have_loaded: whether a rank has loaded parameters; otherwise models whose
                optimizers have begun are left alone.
        """
        found = [replicas() for replicas in _of_comm[self._comm]]
        own = self._optimizer.target
        models = [
            replicas._optimizer.target
            for replicas in found
            if replicas is not None and (have_loaded or not replicas.are_shared)
        ]
        models = [model for model in models if model is not None and model is not own]
        if len(set(self._comm.allgather_obj(len(models)))) > 1:
            return
        for model in models:
            # All ranks find out alike that models have no shapes yet, or other ones.
            with contextlib.suppress(RuntimeError):
                self._comm.bcast_data(model)

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
