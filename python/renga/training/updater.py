"""Updaters under the name they had at first."""

from renga.training.updaters.standard_updater import StandardUpdater
from renga.training.updaters.updater import Updater

__all__ = ["StandardUpdater", "Updater"]
