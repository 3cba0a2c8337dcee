"""Where received messages come from."""

from __future__ import annotations

import dataclasses
import operator

# These stand in place of a rank or of a tag; they are the numbers of mpi4py.
ANY_SOURCE = -1
ANY_TAG = -1


@dataclasses.dataclass
class Status:
    """Source and tag of a message, with the methods of mpi4py's ``Status``."""

    source: int = ANY_SOURCE
    tag: int = ANY_TAG

    def Get_source(self) -> int:
        """The rank that sent the message."""
        return self.source

    def Get_tag(self) -> int:
        """The tag of the message."""
        return self.tag


def given(number: int, wildcard: int) -> int | None:
    """``number``, or None if it is the wildcard; TypeError if it is no integer."""
    number = operator.index(number)
    return None if number == wildcard else number
