"""The base class of links for sharded sequences."""

from __future__ import annotations

import contextlib
from typing import Any

from renga.core.types import ArrayLike
from renga.links.parallel.replicated_link import ReplicatedLink
from renga.links.parallel.sequence.tokens import TOKENS
from renga.parallel.placement.tracker import current_tracker
from renga.parallel.redistribute import with_summed_gradient


class SequenceLink(ReplicatedLink):
    """A link with replicated parameters that is applied to this rank's tokens.

    The gradients of parameters are summed over the ranks. Arguments after the
    communicator are those of the serial link, whose name follows ``Sequence``.
    """

    algorithm = "summed gradients"
    input_layout = output_layout = "sequence"

    def _summed(self, param: Any) -> Any:
        """A parameter whose gradient is summed over the ranks."""
        return None if param is None else with_summed_gradient(self.comm, param)


def is_sharded(x: ArrayLike, least_axes: int = 3) -> bool:
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
