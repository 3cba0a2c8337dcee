"""Updaters under their old module name."""

from renga.training.updaters.parallel_updater import ParallelUpdater
from renga.training.updaters.standard_updater import StandardUpdater
from renga.training.updaters.updater import Updater

__all__ = ["ParallelUpdater", "StandardUpdater", "Updater"]
