"""Updaters: how one iteration trains a model."""

from renga.training.updaters.multiprocess_parallel_updater import (
    MultiprocessParallelUpdater,
)
from renga.training.updaters.parallel_updater import ParallelUpdater
from renga.training.updaters.standard_updater import StandardUpdater
from renga.training.updaters.updater import Updater

__all__ = [
    "MultiprocessParallelUpdater",
    "ParallelUpdater",
    "StandardUpdater",
    "Updater",
]
