"""Images that are sharded over several ranks: how a model is made and run."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from renga.core.around_call import surrounding
from renga.core.link import Link
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.links.parallel.spatial.image import scatter_image
from renga.parallel.conversion.replacement import LinkReplacement
from renga.parallel.conversion.run import ParallelRun, Sharded
from renga.parallel.conversion.strategy import LinkStrategy
from renga.parallel.placement.tracker import PlacementTracker, tracking
from renga.parallel.spatial.arguments import gather_results, scatter_arguments
from renga.parallel.spatial.replacement import SpatialReplacer
from renga.parallel.spatial.spatial_checker import SpatialChecker
from renga.parallel.spatial.substitutes import substitutes


class SpatialRun(ParallelRun):
    """Runs models: functions are replaced by spatial ones or checked."""

    strategy = "spatial"

    def __init__(self, grid: SpatialGrid, is_replicated: bool) -> None:
        super().__init__(grid.comm, is_replicated)
        self.grid = grid

    @contextlib.contextmanager
    def sharding(
        self, model: Link, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Sharded:
        grid = self.grid
        tracker = PlacementTracker(functools.partial(scatter_image, grid))
        gather = functools.partial(gather_results, grid, tracker, type(model).__name__)
        if self.is_replicated:
            args, kwargs = scatter_arguments(grid, tracker, (args, kwargs))
        checker = SpatialChecker(grid.comm, tracker, substitutes(grid, tracker))
        with tracking(tracker), surrounding(checker):
            yield args, kwargs, gather


class SpatialStrategy(LinkStrategy):
    """Each rank has a box of every image."""

    name = "spatial"
    inputs = ("replicated", "sharded")
    takes_grids = True

    def divide(
        self, model: Link, comm: Any, example: Sequence[object]
    ) -> tuple[list[LinkReplacement], SpatialRun]:
        found = SpatialReplacer(model, comm, example).replacements()
        return found, SpatialRun(SpatialGrid.of(comm), self.input == "replicated")
