"""What stands in for functions that look beyond single pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from renga.functions import reshape
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.links.parallel.spatial.image import spatial_average
from renga.links.parallel.spatial.parts import Knowledge
from renga.links.parallel.spatial.pooling import (
    spatial_average_pooling,
    spatial_max_pooling,
    spatial_unpooling,
    spatial_upsampling_2d,
)
from renga.links.parallel.spatial.resize import spatial_resize_images

Substitute = Callable[..., Any]


def substitutes(grid: SpatialGrid, knowledge: Knowledge) -> dict[str, Substitute]:
    """By the names of functions; each gets the function and then its arguments."""

    def of_parts(substitute: Substitute) -> Substitute:
        def call(function: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
            if knowledge.paused or knowledge.kind_of(x) != "part":
                return function(x, *args, **kwargs)
            return substitute(function, x, *args, **kwargs)

        return call

    def spatial(function: Callable[..., Any]) -> Substitute:
        return of_parts(lambda _, x, *args, **kept: function(grid, x, *args, **kept))

    def average_pooling_nd(
        function: Any, x: Any, ksize: Any, stride: Any = None, pad: Any = 0,
        pad_value: int | None = 0,
    ) -> Any:  # fmt: skip
        if pad_value is None and pad != 0:
            raise ValueError(
                "average_pooling_nd: expected pad_value 0 for parts of images, got None"
            )
        return spatial_average_pooling(grid, x, ksize, stride, pad)

    def average(
        function: Any, x: Any, axis: Any = None, weights: Any = None,
        keepdims: bool = False,
    ) -> Any:  # fmt: skip
        axes = (axis,) if isinstance(axis, int) else axis
        averaged = {i % x.ndim for i in (range(x.ndim) if axes is None else axes)}
        if weights is not None or not averaged.issuperset(range(2, x.ndim)):
            return function(x, axis, weights, keepdims)
        y = spatial_average(grid, x, tuple(averaged))
        if not keepdims:
            return y
        return reshape(y, [1 if i in averaged else n for i, n in enumerate(x.shape)])

    def alone(function: Any, *args: Any, **kwargs: Any) -> Any:
        """A function of several steps that looks at one pixel at a time."""
        knowledge.paused = True
        try:
            return function(*args, **kwargs)
        finally:
            knowledge.paused = False

    def refuse(function: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        raise ValueError(
            f"{function.__name__}: expected gather_image before it, as every rank has "
            f"but a part of the images here, got {x.shape}"
        )

    return {
        "average": of_parts(average),
        "average_pooling_2d": spatial(spatial_average_pooling),
        "average_pooling_nd": of_parts(average_pooling_nd),
        "local_response_normalization": of_parts(alone),
        "max_pooling_2d": spatial(spatial_max_pooling),
        "max_pooling_nd": spatial(spatial_max_pooling),
        "resize_images": spatial(spatial_resize_images),
        "spatial_pyramid_pooling_2d": of_parts(refuse),
        "unpooling_2d": spatial(spatial_unpooling),
        "unpooling_nd": spatial(spatial_unpooling),
        "upsampling_2d": spatial(spatial_upsampling_2d),
    }
