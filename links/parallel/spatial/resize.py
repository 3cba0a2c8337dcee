"""Images of another size, whose parts lie on several ranks."""

from __future__ import annotations

from typing import Any

import numpy

from renga.functions.array.resize_images import resample, weights_of_pixels
from renga.links.parallel.spatial.grid import Box, SpatialGrid
from renga.links.parallel.spatial.parts import of_parts
from renga.links.parallel.spatial.plan import Plan, require
from renga.variable import Variable, as_variable


@of_parts()
def spatial_resize_images(
    comm: Any,
    x: Any,
    output_shape: tuple[int, int],
    *,
    mode: str = "bilinear",
    align_corners: bool = True,
) -> Variable:
    """``resize_images`` of images of which each rank has a part.

    Args:
        comm: a communicator, for bands of rows, or a :class:`SpatialGrid`.
        output_shape: the rows and columns of the whole result.

    Shapes:
        x: (N, C, rows, columns) of this rank
        result: (N, C, rows, columns) of this rank

    Raises:
        InvalidType: shapes do not fit.
        ValueError: the mode is neither "bilinear" nor "nearest".
    """
    grid, x = SpatialGrid.of(comm), as_variable(x)
    name = "spatial_resize_images"
    inputs, outputs = grid.whole(name, x), tuple(output_shape)
    require(len(inputs) == 2, name, "images with 4 axes", grid, x, inputs)
    # One row more: an empty part is made of one pixel that is dropped.
    weights = [
        numpy.pad(weights_of_pixels(n, m, mode, align_corners), ((0, 1), (0, 0)))
        for n, m in zip(inputs, outputs)
    ]

    def needed(box: Box) -> Box:
        return tuple(_seen(w[part.start : part.stop]) for w, part in zip(weights, box))

    plan = Plan(grid, inputs, outputs, needed)
    rows, columns = (
        w[made.start : made.stop, need.start : need.stop].astype(x.dtype)
        for w, made, need in zip(weights, plan.made[grid.rank], plan.needed[grid.rank])
    )
    return plan.keep(resample(plan.extend(x), rows, columns))


def _seen(weights: numpy.ndarray) -> range:
    """The pixels that the others are made of; one where there are no others."""
    (seen,) = numpy.nonzero(weights.any(axis=0))
    return range(seen[0], seen[-1] + 1) if len(seen) else range(1)
