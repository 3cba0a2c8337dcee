"""A check that every function of a model computes what it would of whole images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from renga import _core
from renga._core import Locality
from renga.core.operations import operation_name, operation_of
from renga.parallel.conversion.placement_checker import PlacementChecker, axes_of
from renga.parallel.placement import Placement
from renga.parallel.placement.tracker import SPATIAL

# These can be used where an operation needs more than a shard.
_ALTERNATIVES = {
    "batch_normalization": "a BatchNormalization link",
    "convolution_2d": "a link, or spatial_convolution",
    "convolution_nd": "a link, or spatial_convolution",
    "deconvolution_2d": "a link, or spatial_deconvolution",
    "deconvolution_nd": "a link, or spatial_deconvolution",
    "softmax_cross_entropy": "reduce='no' and spatial_average",
    "sum": "spatial_sum or spatial_average",
}


class SpatialChecker(PlacementChecker):
    """Checks each function that gets shards of images, and records placements.

    Raises:
        ValueError: from a function that needs more than the same pixel.
    """

    def _check(self, function: Any, xs: Sequence[Any], ys: Sequence[Any]) -> None:
        is_call = isinstance(function, _core.Call)
        if not is_call and not function.is_elementwise:
            if any(x.ndim > 2 for x in xs):
                _refuse(function.label, xs, "gather_image before it")
            return
        placements = [self.tracker.placement_of_operand(x) for x in xs]
        if SPATIAL in placements:
            if is_call:
                _check_shards(function, xs, placements)
            return
        self._record_replicated(ys, placements)


def _check_shards(
    function: Any, xs: Sequence[Any], placements: Sequence[Placement]
) -> None:
    """Raises ValueError where a result is not the shard of that of whole images."""
    shards = [x for x, p in zip(xs, placements) if p == SPATIAL]
    others = [x for x, p in zip(xs, placements) if p != SPATIAL and x.ndim > 2]
    extents = {tuple(x.shape[2:]) for x in (*shards, *function.results)}
    is_kept = len(extents) == 1 and all(set(x.shape[2:]) == {1} for x in others)
    axes = len(next(iter(extents)))
    if not (is_kept and _is_local(function, shards[0].shape, axes)):
        name = operation_name(function)
        _refuse(name, shards, _ALTERNATIVES.get(name, "gather_image before it"))


def _is_local(function: Any, shape: Sequence[int], axes: int) -> bool:
    """Whether each pixel of the result comes from the same pixel of a shard."""
    operation, along = operation_of(function), axes_of(function)
    if operation is None:
        return False
    if along is not None:
        return all(i is not None and i % (2 + axes) < 2 for i in along)
    if operation.name == "slice":
        slices = function.arguments[1][2:]
        return all(taken == (0, n, 1) for taken, n in zip(slices, shape[2:]))
    is_pointwise = operation.locality == Locality.pointwise
    # The extents of images are known to be kept.
    return is_pointwise or operation.name in ("reshape", "broadcast_to")


def _refuse(name: str, xs: Sequence[Any], alternative: str) -> None:
    shapes = ", ".join(str(x.shape) for x in xs)
    raise ValueError(
        f"{name}: expected {alternative}, as every rank has only its shard of the "
        f"images here, got {shapes}"
    )
