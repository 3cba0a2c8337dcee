"""Updaters: how one iteration trains a model."""

from typing import TYPE_CHECKING

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.training.updaters.parallel_updater import ParallelUpdater as ParallelUpdater
from renga.training.updaters.standard_updater import StandardUpdater as StandardUpdater
from renga.training.updaters.updater import Updater as Updater

if TYPE_CHECKING:
    from renga.training.updaters import (
        multiprocess_parallel_updater as multiprocess_parallel_updater,
    )
    from renga.training.updaters.multiprocess_parallel_updater import (
        MultiprocessParallelUpdater as MultiprocessParallelUpdater,
    )

_suggest_names(
    __name__,
    at_first_use={
        "renga.training.updaters": "multiprocess_parallel_updater",
        "renga.training.updaters.multiprocess_parallel_updater": (
            "MultiprocessParallelUpdater"
        ),
    },
)
