"""Which parameters all ranks have, and how they get those of rank 0."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from renga.communicators import Communicator
from renga.core.link import Link
from renga.core.link.distinct_params import DistinctParam, distinct_params
from renga.core.optimizer import Optimizer
from renga.core.parameter import Parameter
from renga.parallel.data.replicas.first_pass import require_all_loaded, share_loads
from renga.parallel.data.replicas.settings import (
    fingerprint_of,
    require_equal_settings,
    settings_of,
)
from renga.parallel.data.replicas.shared_model import SharedModel
from renga.parallel.data.replicas.states import (
    broadcast_states,
    require_equal_arrays,
    states_checksum,
)


class Replicas(SharedModel):
    """The parameters, states and settings of an optimizer on all ranks.

    Args:
        comm: of the ranks that train one model.
        optimizer: which each of them has.
    """

    def __init__(self, comm: Communicator, optimizer: Optimizer) -> None:
        super().__init__(comm, optimizer)
        self._comm = comm
        self._shared: list[tuple[str, int]] | None = None  # names and identities
        self._shared_params: list[Parameter] = []
        self._loads = 0  # of these parameters, before the last update

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
        self.has_begun, self._shared = True, self._identities()
        self._shared_params = [distinct.param for distinct in self.params()]
        self._loads = self._count_loads()

    def _count_loads(self) -> int:
        return sum([param.loads for param in self._shared_params])

    def note_loads(self) -> None:
        """Finds out whether the model has been loaded without its optimizer."""
        loads = self._count_loads()
        self.has_loaded |= self.has_begun and loads != self._loads
        self._loads = loads

    def fingerprint(self) -> int:
        """Of the settings for parameters that all ranks have; different, mostly."""
        return fingerprint_of(self._optimizer, self._shared_params)

    def checksum(self, has_states: bool) -> int:
        """Of parameters and settings, and of states unless each rank has others."""
        params = self.params()
        settings = repr(sorted(settings_of(self._optimizer, params).items()))
        states = states_checksum(self._optimizer, params) if has_states else 0
        return zlib.crc32(settings.encode(), states ^ self.checksum_of_params())

    def broadcast(self, joined: Sequence[bool], has_run: bool) -> bool:
        """Gives all ranks the parameters and states of rank 0; every rank calls it.

        Args:
            joined: by rank, whether it has no more data.
            has_run: whether some rank's gradients were set by the caller.

        Returns:
            Whether a rank had other parameters.

        Raises:
            ValueError: if the ranks' settings differ.
            RuntimeError: if their models do.
        """
        params = self.params()
        self.require_equal_settings(joined)
        had_others = self.share(has_run)
        broadcast_states(self._comm, self._optimizer, params)
        return had_others

    def require_all_loaded(self) -> None:
        """Has all ranks of a model in parts load it, if one has; every rank calls it.

        Raises:
            ValueError: if only some have, and the others cannot get what they have.
            RuntimeError: likewise.
        """
        if not self._comm.is_subgroup:
            return
        has_loaded = share_loads(self._model, self.has_loaded)
        if has_loaded is not None:
            self.has_loaded = has_loaded
            for other in self._others():  # which the loss may use
                if other.target is not None:
                    other.has_loaded |= bool(share_loads(other.target, False))
            return
        params = self._shared_params
        if not self.has_begun:
            params = [distinct.param for distinct in self.params()]
        require_all_loaded(params, self.has_loaded)

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
