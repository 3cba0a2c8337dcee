"""Arguments and results of a model: whole images, or each rank's shards of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy

from renga.configuration import config
from renga.links.parallel.sharding.consistency import require_same_on_all_ranks
from renga.links.parallel.sharding.placement import REPLICATE, REPLICATE_SUMMED
from renga.links.parallel.sharding.placement_tracker import SPATIAL, PlacementTracker
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.links.parallel.spatial.image import gather_image, scatter_image
from renga.utils.type_check import InvalidType
from renga.variable import Variable

_COMPARED = 4  # positions along each axis of an array


def require_same_call(
    grid: SpatialGrid, name: str, arguments: Any, is_replicated: bool
) -> None:
    """Checks that all ranks call the model with arrays of the same shapes and dtypes.

    Some numbers of replicated images are compared, too, unless they were computed: with
    a different batch on each rank, the shards would be those of different images.

    Raises:
        InvalidType: on all ranks, if the calls differ.
    """
    arrays = list(_arrays(arguments))
    text = ", ".join(_describe(x, is_replicated) for x in arrays) or "no array"
    text += f" {'while training' if config.train else 'while testing'}"
    text += "" if config.enable_backprop else ", without gradients"
    data = b"".join(map(_compared_bytes, arrays)) if is_replicated else b""
    what = 'inputs (input="sharded" takes shards)' if is_replicated else "inputs"
    require_same_on_all_ranks(grid.comm, name, what, InvalidType, text, data)


def scatter_arguments(
    grid: SpatialGrid, tracker: PlacementTracker, arguments: Any
) -> Any:
    """The arguments with this rank's shard of each image.

    Images are the arrays with the most axes, if three or more; those with fewer, such
    as labels of pixels, stay replicated.
    """
    axes = max((x.ndim for x in _arrays(arguments)), default=0)

    def scatter(x: Any) -> Any:
        if x.ndim > 2 and x.ndim == axes:
            return scatter_image(grid, x)
        tracker.record(x, REPLICATE)
        return x

    return _replace(arguments, scatter)


def gather_results(
    grid: SpatialGrid, tracker: PlacementTracker, name: str, result: Any
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

    return _replace(result, gather)


def _is_array(x: Any) -> bool:
    return isinstance(x, (Variable, numpy.ndarray))


def _arrays(value: Any) -> Iterator[Any]:
    if _is_array(value):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _arrays(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _arrays(item)


def _replace(value: Any, function: Callable[[Any], Any]) -> Any:
    """The same lists, tuples and dictionaries with each array replaced."""
    if _is_array(value):
        return function(value)
    if isinstance(value, dict):
        return type(value)((k, _replace(item, function)) for k, item in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_replace(item, function) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_replace(item, function) for item in value)
    return value


def _describe(x: Any, is_replicated: bool) -> str:
    if is_replicated or x.ndim < 3:
        return f"{x.dtype} {x.shape}"
    return f"{x.dtype} {x.shape[:2]} with {x.ndim - 2} more axes"


def _compared_bytes(x: Any) -> bytes:
    if isinstance(x, Variable):
        if x.creator_node is not None:
            return b""  # computed values may differ in the last bits between machines
        x = x.array
    steps = tuple(slice(None, None, max(1, n // _COMPARED)) for n in x.shape)
    return x[steps].tobytes() if x.dtype != object else b""
