"""Models whose placements are tracked and checked while they run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from renga.functions.overrides import overriding
from renga.link import Link
from renga.links.parallel.sharding.placement_checker import PlacementChecker
from renga.links.parallel.sharding.placement_tracker import (
    PlacementTracker,
    current_tracker,
    tracking,
)
from renga.links.parallel.spatial.batch_normalization import SpatialBatchNormalization
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.links.parallel.spatial.image import scatter_image
from renga.links.parallel.spatial.link import SpatialLink
from renga.links.parallel.spatial.model.arguments import (
    gather_results,
    require_same_call,
    scatter_arguments,
)
from renga.links.parallel.spatial.model.substitutes import substitutes


class TrackedLink(Link):
    """A link of a model for images that are sharded over a grid.

    When it is called from outside of the model, functions are replaced by spatial ones
    or checked until it returns.
    """

    _spatial_grid: SpatialGrid
    _is_replicated: bool  # whether it takes and returns replicated images

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._track(super().forward, args, kwargs)  # type: ignore[misc]

    def _track(self, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if current_tracker() is not None:
            return run(*args, **kwargs)
        grid, name = self._spatial_grid, type(self).__name__
        require_same_call(grid, name, (args, kwargs), self._is_replicated)
        tracker = PlacementTracker(functools.partial(scatter_image, grid))
        if self._is_replicated:
            args, kwargs = scatter_arguments(grid, tracker, (args, kwargs))
        spatial_functions = overriding(substitutes(grid, tracker))
        with tracking(tracker), PlacementChecker(tracker), spatial_functions:
            result = run(*args, **kwargs)
        if not self._is_replicated:
            return result
        return gather_results(grid, tracker, name, result)


class TrackedCallable(TrackedLink):
    """A tracked link whose class overrides ``__call__``."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._track(super().__call__, args, kwargs)


def tracked_class(link: Link, grid: SpatialGrid, is_replicated: bool) -> type[Link]:
    """A class derived from that of a link, whose calls are tracked.

    Args:
        is_replicated: whether the link takes and returns replicated images. Otherwise
            these are shards, and the class of a spatial link stays as it is.
    """
    kind = type(link)
    is_spatial = isinstance(link, (SpatialLink, SpatialBatchNormalization))
    if not is_replicated and is_spatial:
        return kind
    base = TrackedLink if kind.__call__ is Link.__call__ else TrackedCallable
    names = {
        "_spatial_grid": grid,
        "_is_replicated": is_replicated,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
    }
    return type(kind.__name__, (base, kind), names)


def is_tracked(model: Link) -> bool:
    """Whether a link of the model is tracked already."""
    return any(isinstance(link, TrackedLink) for link in model.links())
