"""Images of which each rank reads its own part only."""

from __future__ import annotations

from typing import Any

import numpy

from renga.dataset import DatasetMixin
from renga.links.parallel.spatial import SpatialGrid


class ImageParts(DatasetMixin):
    """The examples of a data set, of whose images this rank has its part.

    The last axes of an image are its extents; an example is an image, or a tuple
    whose images are those with as many axes or more, as the masks of a segmentation
    are. They are indexed before they become arrays: of a ``numpy.memmap``, or a
    data set of HDF5, only the part is read. Ranks have to take the same examples.

    Args:
        comm: a communicator, for bands of rows, or a :class:`SpatialGrid`.
        dataset: examples.
        axes: how many extents images have.
    """

    def __init__(self, comm: Any, dataset: Any, axes: int = 2) -> None:
        self._grid = SpatialGrid.of(comm)
        self._dataset = dataset
        self._axes = axes

    def __len__(self) -> int:
        return len(self._dataset)

    def get_example(self, i: int) -> Any:
        """This rank's part of the example ``i``."""
        example = self._dataset[i]
        if isinstance(example, tuple):
            return tuple(map(self._part, example))
        return self._part(example)

    def _part(self, image: Any) -> Any:
        shape = getattr(image, "shape", ())
        if len(shape) < self._axes:
            return image
        box = self._grid.boxes(shape[len(shape) - self._axes :])[self._grid.rank]
        return numpy.array(image[(..., *(slice(p.start, p.stop) for p in box))])
