"""An extension that cuts the graphs off reported values."""

from __future__ import annotations

from renga import configuration
from renga.training import extension
from renga.training.trainer import Trainer
from renga.variable import Variable


class unchain_variables(extension.Extension):
    """Cuts off the graphs of all reported Variables, after every other extension.

    Reported values keep their graphs while ``config.keep_graph_on_report`` is on, for
    extensions that look at them; this one lets go of the memory.
    """

    priority = 0

    def initialize(self, _: Trainer) -> None:
        """Nothing is cut before the training."""

    def trigger(self, _: Trainer) -> bool:
        """Fires where graphs are kept."""
        return configuration.config.keep_graph_on_report

    def __call__(self, trainer: Trainer) -> None:
        """Cuts the graphs off."""
        for value in trainer.observation.values():
            if isinstance(value, Variable):
                value.unchain_backward()
