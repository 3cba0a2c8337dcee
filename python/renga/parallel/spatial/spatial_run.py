"""A run of a model for images that are sharded over several ranks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from renga.communicators import Communicator
from renga.core.around_call import surrounding
from renga.core.link import Link
from renga.functions.noise.seed import random_streams
from renga.links.parallel.spatial.batch_normalization import SpatialBatchNormalization
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.links.parallel.spatial.image import scatter_image
from renga.links.parallel.spatial.link import SpatialLink
from renga.parallel.conversion.arguments import require_same_call
from renga.parallel.conversion.first_calls import FirstCalls
from renga.parallel.conversion.loads import Loads
from renga.parallel.conversion.tracked_link import loaded_class, tracked_class
from renga.parallel.placement.tracker import PlacementTracker, tracking
from renga.parallel.spatial.arguments import (
    gather_results,
    scatter_arguments,
)
from renga.parallel.spatial.spatial_checker import SpatialChecker
from renga.parallel.spatial.substitutes import substitutes


@dataclass(frozen=True)
class SpatialRun:
    """Runs models: functions are replaced by spatial ones or checked."""

    grid: SpatialGrid
    is_replicated: bool  # whether models take and return replicated images
    loads: Loads = field(default_factory=Loads, compare=False)
    first_calls: FirstCalls = field(default_factory=FirstCalls, compare=False)

    @property
    def comm(self) -> Communicator:
        """That of the grid."""
        return self.grid.comm

    def __call__(
        self, name: str, run: Callable[..., Any], args: Any, kwargs: Any
    ) -> Any:
        """The result of ``run``, of a model of this name."""
        grid = self.grid
        arguments, model = (args, kwargs), getattr(run, "__self__")  # noqa: B009
        require_same_call(grid.comm, model, self.loads, arguments, self.is_replicated)
        tracker = PlacementTracker(functools.partial(scatter_image, grid))
        if self.is_replicated:
            args, kwargs = scatter_arguments(grid, tracker, (args, kwargs))
        checker = SpatialChecker(grid.comm, tracker, substitutes(grid, tracker))
        with tracking(tracker), surrounding(checker), random_streams(grid.comm):
            result = run(*args, **kwargs)
        if not self.is_replicated:
            return result
        return gather_results(grid, tracker, name, result)

    def class_of(self, link: Link) -> type[Link]:
        """The class of a link of a model.

        Where models take shards, a spatial link is called as it is.
        """
        is_spatial = isinstance(link, (SpatialLink, SpatialBatchNormalization))
        if not self.is_replicated and is_spatial:
            return loaded_class(link, self)
        return tracked_class(link, self)
