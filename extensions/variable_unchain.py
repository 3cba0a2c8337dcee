"""An extension that frees the graphs of reported values."""

from __future__ import annotations

from renga.core import configuration
from renga.core.variable import Variable
from renga.training import extension
from renga.training.trainer import Trainer


class unchain_variables(extension.Extension):
    """Frees the graphs of all reported Variables, after every other extension.

    Reported values keep their graphs while ``config.keep_graph_on_report`` is on, for
    extensions that read them; this one frees the memory.
    """

    priority = 0

    def initialize(self, _: Trainer) -> None:
        """Does nothing before training."""

    def trigger(self, _: Trainer) -> bool:
        """Fires if graphs are kept."""
        return configuration.config.keep_graph_on_report

    def __call__(self, trainer: Trainer) -> None:
        """Frees the graphs."""
        for value in trainer.observation.values():
            if isinstance(value, Variable):
                value.unchain_backward()
