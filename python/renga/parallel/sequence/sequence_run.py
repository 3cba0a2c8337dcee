"""A run of a model for sequences that are sharded over several ranks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from renga.communicators import Communicator
from renga.core.around_call import surrounding
from renga.core.link import Link
from renga.core.variable import Variable
from renga.functions import get_item
from renga.functions.noise.seed import random_streams
from renga.links.parallel.sequence.link import SequenceLink
from renga.links.parallel.sequence.tokens import (
    TOKENS,
    gather_sequence,
    scatter_sequence,
)
from renga.parallel.conversion.arguments import (
    replace_arrays,
    require_same_call,
)
from renga.parallel.conversion.first_calls import FirstCalls
from renga.parallel.conversion.loads import Loads
from renga.parallel.conversion.tracked_link import loaded_class, tracked_class
from renga.parallel.placement import REPLICATE, Shard
from renga.parallel.placement.tracker import PlacementTracker, tracking
from renga.parallel.redistribute import (
    all_gather_size,
    with_summed_gradient,
)
from renga.parallel.sequence.sequence_checker import SequenceChecker
from renga.utils.type_check import InvalidType


@dataclass(frozen=True)
class SequenceRun:
    """Runs models: functions are checked, and embeddings of positions replaced.

    Positional arguments of two axes or more are sequences (N, L, …); keyword arguments,
    such as masks, and others are replicated.
    """

    comm: Communicator
    is_replicated: bool  # whether models take and return replicated sequences
    loads: Loads = field(default_factory=Loads, compare=False)
    first_calls: FirstCalls = field(default_factory=FirstCalls, compare=False)

    def __call__(
        self, name: str, run: Callable[..., Any], args: Any, kwargs: Any
    ) -> Any:
        """The result of ``run``, of a model of this name."""
        comm, model = self.comm, getattr(run, "__self__")  # noqa: B009 (of a callable)
        compared = (args, kwargs) if self.is_replicated else ()
        require_same_call(comm, model, self.loads, compared, self.is_replicated)
        scatter = functools.partial(scatter_sequence, comm)
        tracker = PlacementTracker(scatter, TOKENS)

        def shard(x: Any) -> Any:
            is_sequence = x.ndim > 1
            x = scatter(x) if is_sequence and self.is_replicated else x
            tracker.record(x, TOKENS if is_sequence else REPLICATE)
            return x

        def replicate(x: Any) -> Any:
            tracker.record(x, REPLICATE)
            return x

        args, kwargs = replace_arrays(args, shard), replace_arrays(kwargs, replicate)
        own = {
            "position_embedding": functools.partial(_position_embedding, comm, tracker)
        }
        checker = SequenceChecker(comm, tracker, own)
        with tracking(tracker), surrounding(checker), random_streams(comm):
            result = run(*args, **kwargs)
        if not self.is_replicated:
            return result
        return replace_arrays(
            result, functools.partial(_gather_result, comm, tracker, name)
        )

    def class_of(self, link: Link) -> type[Link]:
        """The class of a link of a model.

        Where models take shards, a sequence link is called as it is.
        """
        if not self.is_replicated and isinstance(link, SequenceLink):
            return loaded_class(link, self)
        return tracked_class(link, self)


def _gather_result(
    comm: Communicator, tracker: PlacementTracker, name: str, y: Any
) -> Any:
    placement = tracker.placement_of(y)
    is_sharded = placement == TOKENS
    is_known = placement in (TOKENS, REPLICATE)
    if not is_known or (is_sharded and not isinstance(y, Variable)):
        raise ValueError(
            f"{name}: expected it to return Variables that are replicated or sharded "
            f"sequences, got {type(y).__name__} {y.shape}"
        )
    return gather_sequence(comm, y) if is_sharded else y


def _position_embedding(
    comm: Communicator,
    tracker: PlacementTracker,
    function: Any,
    W: Any,
    x: Any,
    position: int = 0,
) -> Any:
    """The rows of W for this rank's tokens."""
    if tracker.placement_of(x, 2) != TOKENS:
        return function(W, x, position)
    length = sum(all_gather_size(x, comm, 1))
    if not 0 <= position <= len(W) - length:
        raise InvalidType(
            f"position_embedding: expected x of (N, L, …), L at most {len(W)} less "
            f"position {position}, got {length} tokens"
        )
    own = slice(position + comm.rank, position + length, comm.size)
    with tracker.paused():
        y = get_item(with_summed_gradient(comm, W), own)
    tracker.record(y, Shard(0))
    return y
