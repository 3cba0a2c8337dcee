"""What the caller changes on a worker, and the servers have to know."""

from __future__ import annotations

import pickle

from renga.core.optimizer import GradientMethod
from renga.core.parameter import Parameter
from renga.parallel.asynchronous.parameter_watch import ParameterWatch
from renga.parallel.asynchronous.server.client import Client
from renga.parallel.asynchronous.server.settings import SettingsReader
from renga.parallel.asynchronous.server.shards import Shards
from renga.parallel.asynchronous.server.shared_client import SharedClient


class CallerChanges:
    """Sends settings, parameters and states to the servers when they have changed.

    Args:
        optimizer: the worker's.
        shards: the division of its parameters.
        client: which sends.
    """

    def __init__(
        self, optimizer: GradientMethod, shards: Shards, client: Client | SharedClient
    ) -> None:
        self._optimizer = optimizer
        self._shards = shards
        self._client = client
        self._settings = SettingsReader(optimizer, shards.params)
        self._sent = b""
        self._watch = ParameterWatch(shards.params)

    @property
    def params(self) -> list[Parameter]:
        """The parameters that the servers have."""
        return self._shards.params

    def send_settings(self) -> None:
        """Sends the settings if they have changed.

        Raises:
            ValueError, TypeError: for hooks that the servers cannot call.
        """
        settings = self._settings.read()
        pickled = pickle.dumps(settings)
        if pickled != self._sent:
            self._shards.check(self._optimizer)
            self._client.configure(settings)
            self._sent = pickled

    def send(self, has_loaded: bool) -> bool:
        """Sends parameters and states that have changed; whether parameters have.

        Args:
            has_loaded: whether the optimizer's states have been loaded.
        """
        masks = self._watch.changes()
        if masks or has_loaded:
            rules = [param.update_rule for param in self._shards.params]
            states = (self._optimizer.t, rules) if has_loaded else None
            self._client.change(masks, states)
        return bool(masks)

    @property
    def can_be_sent(self) -> bool:
        """Whether the servers can call the present hooks for their shards."""
        return self._shards.fits(self._optimizer)

    def record(self) -> None:
        """Takes the parameters as they are for those of the servers."""
        self._watch.record()
