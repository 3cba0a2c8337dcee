"""Which parallel links take the place of serial ones, and a base of them."""

from __future__ import annotations

import copy
from collections import defaultdict
from typing import Any, Callable, TypeVar

from renga.communicators import Communicator
from renga.communicators.communicator_base import CommunicatorBase
from renga.core.link import Link

_Kind = TypeVar("_Kind", bound=type)

#: By strategy, the parallel class of a serial one.
FORMS: defaultdict[str, dict[type, Any]] = defaultdict(dict)


def parallel_form(serial: type, strategy: str) -> Callable[[_Kind], _Kind]:
    """Decorates the class of links that replace those of class ``serial``.

    Its ``from_link`` makes one with the weights of a serial link.
    """

    def register(kind: _Kind) -> _Kind:
        FORMS[strategy][serial] = kind
        return kind

    return register


def is_form(link: Link, strategy: str | None = None) -> bool:
    """Whether a link is a parallel one, of a strategy if one is given."""
    strategies = FORMS if strategy is None else (strategy,)
    return any(isinstance(link, tuple(FORMS[each].values())) for each in strategies)


_Link = TypeVar("_Link", bound=Link)


def copied_as(kind: type[_Link], link: Link) -> _Link:
    """A copy of a link as one of another class, whose constructor is not called."""
    new = kind.__new__(kind)
    vars(new).update(vars(copy.deepcopy(link)))
    return new


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
        new = copied_as(cls, link)
        new._set_ranks(comm)
        new._broadcast()
        return new

    def _set_ranks(self, comm: Any) -> None:
        self.comm = comm

    def _broadcast(self) -> None:
        """Gives all ranks the values of rank 0."""
        if self.comm.size > 1 and all(p.is_initialized for p in self.params()):
            self.comm.bcast_data(self)
