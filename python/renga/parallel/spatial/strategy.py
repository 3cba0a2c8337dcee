"""Images that are sharded over several ranks: how a model is made and run."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from renga.communicators import Communicator
from renga.core.around_call import surrounding
from renga.core.link import Link
from renga.links.connection.linear import Linear
from renga.links.convolution.deconvolution import Deconvolution2D, DeconvolutionND
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.forms import FORMS
from renga.links.parallel.spatial.grid import SpatialGrid, extents_of
from renga.links.parallel.spatial.halo_convolution import halo_convolution
from renga.links.parallel.spatial.image import gather_image, scatter_image
from renga.links.parallel.spatial.window import SpatialWindow
from renga.parallel.conversion.arguments import arrays_in, map_arrays
from renga.parallel.conversion.replacement import LinkReplacement, Replacer
from renga.parallel.conversion.strategy import LinkStrategy, ParallelRun, Ranks, Sharded
from renga.parallel.conversion.tracing import CalledLink, trace
from renga.parallel.placement import REPLICATE
from renga.parallel.placement.tracker import SPATIAL, PlacementTracker, tracking
from renga.parallel.redistribute.cost import StepCost, rates_of
from renga.parallel.spatial.spatial_checker import SpatialChecker
from renga.parallel.spatial.substitutes import substitutes


class SpatialReplacer(Replacer):
    """Makes links that take this rank's shard of images.

    Args:
        model: whose links are replaced.
        comm: a :class:`SpatialGrid`, or a communicator, for bands of rows.
        inputs: examples of replicated inputs, from which costs are known; or none.
    """

    strategy = "spatial"
    others = "correct only for inputs that are replicated"

    def __init__(
        self, model: Link, comm: Communicator | SpatialGrid, inputs: Sequence[object]
    ) -> None:
        kinds = tuple(FORMS["spatial"])
        calls = trace(model, inputs, kinds).calls
        super().__init__(model, SpatialGrid.of(comm), calls)

    def cost(self, link: Link) -> StepCost | None:
        """Of a step: halo exchanges, and the all-reduce of the gradients."""
        calls, grid = self.calls_of(link), self.comm
        if not calls:
            return None
        others, n = grid.size - 1, len(calls)
        if isinstance(link, BatchNormalization):
            # Statistics and their gradients of each call, then those of parameters.
            messages, numbers = (2 * n + 1) * others, 5 * n + 2
            moved = 8.0 * numbers * calls[0].x_shape[1] * others
        elif isinstance(link, Linear):
            messages = n * others
            gathered = sum(4 * math.prod(call.x_shape) for call in calls)
            moved = gathered * others / grid.size
        else:
            parameters = 4 * sum(param.size for param in link.params())
            messages, moved = 2 * n * others, 2 * n * parameters * others / grid.size
            for call in calls:
                for transposed in (False, True):  # forward and backward, or the reverse
                    count = _halo_size(link, grid, call, transposed)
                    messages, moved = messages + bool(count), moved + 4 * count
        return rates_of(grid.comm).cost(messages, moved)


def _halo_size(
    link: Any, grid: SpatialGrid, call: CalledLink, transposed: bool
) -> float:
    """The number of elements of x, or of gy, that rank 0 receives."""
    window = SpatialWindow.of(
        link.W.shape[2:], link.stride, link.pad, link.dilate, link.W.ndim - 2
    )
    large, small = call.x_shape, call.y_shape
    if isinstance(link, (Deconvolution2D, DeconvolutionND)):
        large, small = small, large
    source, result = (small, large) if transposed else (large, small)
    halos = halo_convolution(
        grid, window, source[2:], result[2:], transposed
    ).exchange.requested
    return math.prod(source[:2]) * sum(math.prod(extents_of(box)) for box in halos)


def scatter_arguments(
    grid: SpatialGrid, tracker: PlacementTracker, arguments: object
) -> Any:
    """The arguments with this rank's shard of each image.

    Images are the arrays with the most axes, if three or more; those with fewer, such
    as labels of pixels, stay replicated, and so do single pixels beside larger images.
    """
    axes = max((x.ndim for x in arrays_in(arguments)), default=0)
    images = [x for x in arrays_in(arguments) if x.ndim > 2 and x.ndim == axes]
    larger = [x for x in images if set(x.shape[2:]) != {1}]
    scattered = {id(x) for x in larger or images}

    def scatter(x: Any) -> Any:
        is_image = id(x) in scattered
        x = scatter_image(grid, x) if is_image else x
        tracker.record(x, SPATIAL if is_image else REPLICATE)
        return x

    return map_arrays(scatter, arguments)


class SpatialRun(ParallelRun):
    """Runs models: functions are replaced by spatial ones or checked."""

    strategy = "spatial"
    reads_shards = True

    def __init__(self, grid: SpatialGrid, is_replicated: bool) -> None:
        super().__init__(grid.comm, is_replicated)
        self.grid = grid

    @contextlib.contextmanager
    def sharding(
        self, model: Link, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Sharded:
        grid, name = self.grid, type(model).__name__
        tracker = PlacementTracker(
            functools.partial(scatter_image, grid),
            note_read=self.first_calls.note_read if self.is_replicated else None,
        )
        whole = functools.partial(gather_image, grid)
        expected = "whole or sharded images"
        gather = functools.partial(self.whole_result, name, tracker, expected, whole)
        if self.is_replicated:
            args, kwargs = scatter_arguments(grid, tracker, (args, kwargs))
            tracker.note_shards((args, kwargs))
        checker = SpatialChecker(grid.comm, tracker, substitutes(grid, tracker))
        with tracking(tracker), surrounding(checker):
            yield args, kwargs, functools.partial(map_arrays, gather)


class SpatialStrategy(LinkStrategy):
    """Each rank has a box of every image."""

    name = "spatial"
    inputs = ("replicated", "sharded")
    takes_grids = True

    def divide(
        self, model: Link, comm: Ranks, example: Sequence[object]
    ) -> tuple[list[LinkReplacement], SpatialRun]:
        found = SpatialReplacer(model, comm, example).replacements()
        return found, SpatialRun(SpatialGrid.of(comm), self.input == "replicated")
