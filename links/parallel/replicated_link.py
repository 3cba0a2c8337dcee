"""The base class of parallel links whose parameters every rank has."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from renga.communicators import Communicator
from renga.communicators.communicator_base import CommunicatorBase
from renga.core.link import Link

_Self = TypeVar("_Self", bound="ReplicatedLink")


class ReplicatedLink(Link):
    """A link whose parameters are those of rank 0, as soon as they have values.

    The first argument is a communicator; the others are those of the serial link.
    """

    comm: Communicator

    def __init__(self, comm: CommunicatorBase, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._set_ranks(comm)
        self._broadcast()

    @classmethod
    def from_link(cls: type[_Self], link: Link, comm: Communicator) -> _Self:
        """A copy of a serial link, for these ranks."""
        new = cls.__new__(cls)
        vars(new).update(vars(copy.deepcopy(link)))
        new._set_ranks(comm)
        new._broadcast()
        return new

    def _set_ranks(self, comm: Any) -> None:
        self.comm = comm

    def _broadcast(self) -> None:
        """Gives all ranks the values of rank 0."""
        if self.comm.size > 1 and all(p.is_initialized for p in self.params()):
            self.comm.bcast_data(self)
