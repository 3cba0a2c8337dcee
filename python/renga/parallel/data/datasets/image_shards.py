"""Images of which each rank reads its own shard only."""

from __future__ import annotations

from typing import Any

import numpy

from renga.communicators import Communicator
from renga.core.types import Dataset
from renga.dataset import DatasetMixin
from renga.links.parallel.spatial import SpatialGrid


class ImageShards(DatasetMixin):
    """The examples of a data set with this rank's shard of each image.

    An example is an image, or a tuple; images are arrays with ``axes`` axes or more, of
    which the last ones are sharded. They are indexed before they become arrays: of a
    ``numpy.memmap`` or an HDF5 data set, only the shard is read. All ranks have to take
    the same examples.

    Args:
        comm: a :class:`SpatialGrid`, or a communicator, for bands of rows.
        dataset: examples.
        axes: the number of spatial axes.
    """

    def __init__(
        self, comm: Communicator | SpatialGrid, dataset: Dataset, axes: int = 2
    ) -> None:
        self._grid = SpatialGrid.of(comm)
        self._dataset = dataset
        self._axes = axes

    def __len__(self) -> int:
        return len(self._dataset)

    def get_example(self, i: int) -> object:
        """Example ``i``, with this rank's shards."""
        example = self._dataset[i]
        if isinstance(example, tuple):
            return tuple(map(self._shard, example))
        return self._shard(example)

    def _shard(self, image: Any) -> Any:
        shape = getattr(image, "shape", ())
        if len(shape) < self._axes:
            return image
        box = self._grid.boxes(shape[len(shape) - self._axes :])[self._grid.rank]
        return numpy.array(image[(..., *(slice(p.start, p.stop) for p in box))])
