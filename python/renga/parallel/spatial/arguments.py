"""Arguments and results of a model: whole images, or each rank's shards of them."""

from __future__ import annotations

from typing import Any

from renga.core.variable import Variable
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.links.parallel.spatial.image import gather_image, scatter_image
from renga.parallel.conversion.arguments import arrays_in, map_arrays
from renga.parallel.placement import REPLICATE, REPLICATE_SUMMED
from renga.parallel.placement.tracker import SPATIAL, PlacementTracker


def scatter_arguments(
    grid: SpatialGrid, tracker: PlacementTracker, arguments: object
) -> Any:
    """The arguments with this rank's shard of each image.

    Images are the arrays with the most axes, if three or more; those with fewer, such
    as labels of pixels, stay replicated.
    """
    axes = max((x.ndim for x in arrays_in(arguments)), default=0)

    def scatter(x: Any) -> Any:
        if x.ndim > 2 and x.ndim == axes:
            return scatter_image(grid, x)
        tracker.record(x, REPLICATE)
        return x

    return map_arrays(scatter, arguments)


def gather_results(
    grid: SpatialGrid, tracker: PlacementTracker, name: str, result: object
) -> Any:
    """The result with whole images in the place of shards.

    Raises:
        ValueError: an array of the result is no Variable, or its gradient is pending.
    """

    def gather(y: Any) -> Any:
        placement = tracker.placement_of(y)
        is_sharded = placement == SPATIAL
        if placement == REPLICATE_SUMMED or (
            is_sharded and not isinstance(y, Variable)
        ):
            raise ValueError(
                f"{name}: expected it to return Variables that are whole or sharded "
                f"images, got {type(y).__name__} {y.shape}"
            )
        return gather_image(grid, y) if is_sharded else y

    return map_arrays(gather, result)
