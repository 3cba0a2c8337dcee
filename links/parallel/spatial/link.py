"""What links of images in parts have in common."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from renga.link import Link
from renga.links.parallel.spatial.grid import SpatialGrid

_Self = TypeVar("_Self", bound="SpatialLink")


class SpatialLink(Link):
    """A link that every rank has whole, with the same parameters.

    They are rank 0's from the moment they have values. The first argument of every
    such link is a communicator, for bands of rows, or a :class:`SpatialGrid`; the
    others are those of the serial link, whose name it has behind ``Spatial``.
    """

    grid: SpatialGrid
    algorithm = "halos"
    input_layout = output_layout = "parts"

    def __init__(self, comm: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.grid = SpatialGrid.of(comm)
        self._share()

    @classmethod
    def from_link(cls: type[_Self], link: Link, comm: Any) -> _Self:
        """A copy of a serial link for images in parts."""
        new = cls.__new__(cls)
        vars(new).update(vars(copy.deepcopy(link)), grid=SpatialGrid.of(comm))
        new._share()
        return new

    def _share(self) -> None:
        """Gives all ranks the values that rank 0 has."""
        if self.grid.size > 1 and all(p.is_initialized for p in self.params()):
            self.grid.comm.bcast_data(self)
