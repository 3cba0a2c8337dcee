"""What links of sharded images have in common."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from renga.communicators import Communicator
from renga.core.link import Link
from renga.links.parallel.spatial.grid import SpatialGrid

_Self = TypeVar("_Self", bound="SpatialLink")


class SpatialLink(Link):
    """A link with replicated parameters that is applied to sharded images.

    As soon as the parameters have values, they are those of rank 0. The first argument
    is a :class:`SpatialGrid`, or a communicator, for bands of rows; the others are
    those of the serial link, whose name follows ``Spatial``.
    """

    grid: SpatialGrid
    algorithm = "halo exchange"
    input_layout = output_layout = "spatial"

    def __init__(
        self, comm: Communicator | SpatialGrid, *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.grid = SpatialGrid.of(comm)
        self._broadcast()

    @classmethod
    def from_link(
        cls: type[_Self], link: Link, comm: Communicator | SpatialGrid
    ) -> _Self:
        """A copy of a serial link, for sharded images."""
        new = cls.__new__(cls)
        vars(new).update(vars(copy.deepcopy(link)), grid=SpatialGrid.of(comm))
        new._broadcast()
        return new

    def _broadcast(self) -> None:
        """Gives all ranks the values of rank 0."""
        if self.grid.size > 1 and all(p.is_initialized for p in self.params()):
            self.grid.comm.bcast_data(self)
