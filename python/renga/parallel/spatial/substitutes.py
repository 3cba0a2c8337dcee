"""Spatial functions that replace those which need more than one pixel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from renga.core.variable import Variable
from renga.functions import broadcast_to, reshape
from renga.links.parallel.spatial.convolution import (
    spatial_convolution,
    spatial_deconvolution,
)
from renga.links.parallel.spatial.grid import SpatialGrid, extents_of
from renga.links.parallel.spatial.image import spatial_average
from renga.links.parallel.spatial.pooling import (
    spatial_average_pooling,
    spatial_max_pooling,
    spatial_unpooling,
    spatial_upsampling_2d,
)
from renga.links.parallel.spatial.resize import spatial_resize_images
from renga.parallel.placement import REPLICATE
from renga.parallel.placement.tracker import SPATIAL, PlacementTracker
from renga.utils.extents import check_integer

Substitute = Callable[..., Any]


def substitutes(grid: SpatialGrid, tracker: PlacementTracker) -> dict[str, Substitute]:
    """By the names of functions; each is called with the function and its arguments.

    They are applied to sharded images only; other arguments go to the function.
    """
    found: dict[str, Substitute] = {
        "average": partial(_average, grid),
        "average_pooling_2d": partial(_pooling, grid, spatial_average_pooling),
        "average_pooling_nd": partial(_average_pooling_nd, grid),
        "bias": partial(_beside_array, grid, tracker),
        "convolution_2d": partial(_convolution, grid, tracker, spatial_convolution),
        "convolution_nd": partial(_convolution, grid, tracker, spatial_convolution),
        "deconvolution_2d": partial(_convolution, grid, tracker, spatial_deconvolution),
        "deconvolution_nd": partial(_convolution, grid, tracker, spatial_deconvolution),
        "local_response_normalization": partial(_pixelwise, tracker),
        "max_pooling_2d": partial(_pooling, grid, spatial_max_pooling),
        "max_pooling_nd": partial(_pooling, grid, spatial_max_pooling),
        "prelu": partial(_beside_array, grid, tracker),
        "resize_images": partial(_resize_images, grid),
        "scale": partial(_beside_array, grid, tracker),
        "spatial_pyramid_pooling_2d": _refuse,
        "swish": partial(_beside_array, grid, tracker),
        "unpooling_2d": partial(_spatial, grid, spatial_unpooling),
        "unpooling_nd": partial(_spatial, grid, spatial_unpooling),
        "upsampling_2d": partial(_spatial, grid, spatial_upsampling_2d),
    }
    return {name: _for_shards(tracker, function) for name, function in found.items()}


def _for_shards(tracker: PlacementTracker, substitute: Substitute) -> Substitute:
    def call(function: Any, x: Variable, *args: Any, **kwargs: object) -> Any:
        if tracker.is_paused or tracker.placement_of(x) != SPATIAL:
            return function(x, *args, **kwargs)
        y = substitute(function, x, *args, **kwargs)
        tracker.note_shards(y)
        return y

    return call


def _spatial(
    grid: SpatialGrid, spatial: Substitute, _: Any, x: Any, *args: Any, **kwargs: Any
) -> Any:
    return spatial(grid, x, *args, **kwargs)


def _convolution(
    grid: SpatialGrid,
    tracker: PlacementTracker,
    spatial: Substitute,
    function: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """A convolution by filters that are parameters, or are computed of them."""
    given = inspect.signature(function).bind(*args, **kwargs)
    given.apply_defaults()
    x, W, b, stride, pad, option, *rest = given.args
    options = {**dict(zip(("dilate", "groups"), rest)), **given.kwargs}
    are_replicated = all(
        tracker.placement_of(each) == REPLICATE
        for each in (W, b)
        if isinstance(each, Variable)
    )
    if not are_replicated or not options.keys() <= {"dilate", "groups"}:
        return function(*args, **kwargs)
    name = function.__name__
    return spatial(grid, x, W, b, stride, pad, option, **options, name=name)


def _pooling(
    grid: SpatialGrid,
    spatial: Substitute,
    _: Any,
    x: Any,
    ksize: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    _require_whole_extents(grid, spatial.__name__, x, ksize, (1,))
    return spatial(grid, x, ksize, *args, **kwargs)


def _average_pooling_nd(
    grid: SpatialGrid,
    _: Any,
    x: Any,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    pad_value: int | None = 0,
) -> Any:
    if pad_value is None and pad != 0:
        raise ValueError(
            "average_pooling_nd: expected pad_value 0 for sharded images, got None"
        )
    _require_whole_extents(grid, "average_pooling_nd", x, ksize, (1,))
    return spatial_average_pooling(grid, x, ksize, stride, pad)


def _resize_images(
    grid: SpatialGrid, _: Any, x: Any, output_shape: Any, *args: Any, **kwargs: Any
) -> Any:
    _require_whole_extents(grid, "resize_images", x, output_shape, range(1, 33))
    return spatial_resize_images(grid, x, output_shape, *args, **kwargs)


def _average(
    grid: SpatialGrid,
    function: Any,
    x: Any,
    axis: Any = None,
    weights: Any = None,
    keepdims: bool = False,
) -> Any:
    axes = (axis,) if isinstance(axis, int) else axis
    averaged = {i % x.ndim for i in (range(x.ndim) if axes is None else axes)}
    if weights is not None or not averaged.issuperset(range(2, x.ndim)):
        return function(x, axis, weights, keepdims)
    y = spatial_average(grid, x, tuple(averaged))
    if not keepdims:
        return y
    return reshape(y, [1 if i in averaged else n for i, n in enumerate(x.shape)])


def _beside_array(
    grid: SpatialGrid,
    tracker: PlacementTracker,
    function: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """A function of images and of an array for some of their axes.

    That is the second argument; its first axis belongs to the axis of the images that
    is the third one, if the function takes it, or to axis 1.
    """
    given = inspect.signature(function).bind(*args, **kwargs)
    given.apply_defaults()
    x, y, *axes = given.arguments.values()
    if not hasattr(y, "shape") or tracker.placement_of(y) != REPLICATE:
        return function(*args, **kwargs)
    first = check_integer(function.__name__, "axis", axes[0]) if axes else 1
    own = (1,) * first + tuple(y.shape) + (1,) * (x.ndim - first - y.ndim)
    whole = (*x.shape[:2], *grid.whole_extents(function.__name__, x))
    fits = len(own) == x.ndim and all(n in (1, m) for n, m in zip(own, whole))
    if not fits or set(own[2:]) == {1}:
        return function(*args, **kwargs)
    with tracker.paused():
        pixels = broadcast_to(reshape(y, own), own[:2] + whole[2:])
        shard: Any = tracker.take_shard(pixels)
        if axes:
            return function(x, shard, 0)
        return function(x, reshape(shard, shard.shape[1:]))


def _pixelwise(
    tracker: PlacementTracker, function: Any, *args: Any, **kwargs: Any
) -> Any:
    """A function made of several that computes each pixel from the same pixel."""
    with tracker.paused():
        return function(*args, **kwargs)


def _refuse(function: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    raise ValueError(
        f"{function.__name__}: expected gather_image before it, as every rank has only "
        f"its shard of the images here, got {x.shape}"
    )


def _require_whole_extents(
    grid: SpatialGrid, name: str, x: Any, extents: Any, multiples: Iterable[int]
) -> None:
    """Checks that extents were not taken from the shape of a shard.

    Args:
        multiples: by which a function may multiply the extents that it takes.

    Raises:
        ValueError: the extents are a multiple of a shard's, but not of the whole's.
    """
    if not isinstance(extents, (tuple, list)) or len(extents) != x.ndim - 2:
        return
    whole = grid.whole_extents(name, x)

    def is_multiple_of(other: Sequence[int]) -> bool:
        return any(tuple(extents) == tuple(k * n for n in other) for k in multiples)

    shards = {extents_of(box) for box in grid.boxes(whole)}
    if any(map(is_multiple_of, shards - {whole})) and not is_multiple_of(whole):
        raise ValueError(
            f"{name}: expected extents of whole images, {whole}, got {tuple(extents)}: "
            f"x.shape is that of this rank's shard here, {tuple(x.shape)}"
        )
