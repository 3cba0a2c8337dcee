"""The base class of links for sharded sequences."""

from __future__ import annotations

import contextlib
import copy
from typing import Any, TypeVar

from renga.communicators import Communicator
from renga.core.link import Link
from renga.links.parallel.sequence.tokens import TOKENS
from renga.parallel.placement.tracker import current_tracker
from renga.parallel.redistribute import with_summed_gradient

_Self = TypeVar("_Self", bound="SequenceLink")


class SequenceLink(Link):
    """A link with replicated parameters that is applied to this rank's tokens.

    The gradients of parameters are summed over the ranks. The first argument is a
    communicator; the others are those of the serial link, whose name follows
    ``Sequence``.
    """

    comm: Communicator
    algorithm = "summed gradients"
    input_layout = output_layout = "sequence"

    def __init__(self, comm: Communicator, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.comm = comm
        self._broadcast()

    @classmethod
    def from_link(cls: type[_Self], link: Link, comm: Communicator) -> _Self:
        """A copy of a serial link, for sharded sequences."""
        new = cls.__new__(cls)
        vars(new).update(vars(copy.deepcopy(link)), comm=comm)
        new._broadcast()
        return new

    def _broadcast(self) -> None:
        """Gives all ranks the values of rank 0."""
        if self.comm.size > 1 and all(p.is_initialized for p in self.params()):
            self.comm.bcast_data(self)

    def _summed(self, param: Any) -> Any:
        """A parameter whose gradient is summed over the ranks."""
        return None if param is None else with_summed_gradient(self.comm, param)


def is_sharded(x: Any, least_axes: int = 3) -> bool:
    """Whether ``x`` has this rank's tokens; outside of a tracked model, it always has.

    Args:
        least_axes: an array of unknown placement is taken for tokens if it has at least
            this many axes.
    """
    tracker = current_tracker()
    return tracker is None or tracker.placement_of(x, least_axes) == TOKENS


def unchecked() -> contextlib.AbstractContextManager[None]:
    """A context in which the model's functions are not checked."""
    tracker = current_tracker()
    return contextlib.nullcontext() if tracker is None else tracker.paused()
