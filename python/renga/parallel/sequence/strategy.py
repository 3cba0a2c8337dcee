"""Sequences that are sharded over several ranks: how a model is made and run."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from renga.communicators import Communicator
from renga.core.around_call import surrounding
from renga.core.link import Link
from renga.core.types import Array, ArrayLike
from renga.functions import get_item
from renga.links.attention.multi_head_attention import MultiHeadAttention
from renga.links.connection.linear import Linear
from renga.links.parallel.forms import FORMS
from renga.links.parallel.sequence.tokens import (
    TOKENS,
    gather_sequence,
    scatter_sequence,
)
from renga.parallel.conversion.arguments import map_arrays
from renga.parallel.conversion.replacement import LinkReplacement, Replacer
from renga.parallel.conversion.strategy import LinkStrategy, ParallelRun, Sharded
from renga.parallel.conversion.tracing import trace
from renga.parallel.placement import REPLICATE, Shard
from renga.parallel.placement.tracker import PlacementTracker, tracking
from renga.parallel.redistribute import all_gather_size, with_summed_gradient
from renga.parallel.redistribute.cost import StepCost, rates_of
from renga.parallel.sequence.sequence_checker import SequenceChecker
from renga.utils.type_check import InvalidType


class SequenceReplacer(Replacer):
    """Makes links that take this rank's tokens.

    Args:
        model: whose links are replaced.
        comm: the communicator of the ranks.
        inputs: examples of replicated inputs, to estimate costs from; may be empty.
    """

    strategy = "sequence"
    others = "its functions are checked when it runs"

    def __init__(
        self, model: Link, comm: Communicator, inputs: Sequence[object]
    ) -> None:
        traced = trace(model, inputs, tuple(FORMS["sequence"]))
        super().__init__(model, comm, [*traced.calls, *traced.attended])

    def reason(self, link: Link) -> str:
        is_lazy = any(not param.is_initialized for param in link.params())
        if is_lazy and not isinstance(link, Linear):
            return "its parameters have no shape yet: pass an example of the input"
        return super().reason(link)

    def cost(self, link: Link) -> StepCost | None:
        """Of a step: all-reduces of gradients, and messages of ring attention."""
        calls = self.calls_of(link)
        if not calls:
            return None
        ranks = self.comm.size
        sizes = [4 * param.size for param in link.params()]
        messages = 2 * len(sizes) * len(calls) * (ranks - 1)
        moved = 2 * sum(sizes) * len(calls) * (ranks - 1) / ranks
        if isinstance(link, MultiHeadAttention) and ranks > 1:
            # Keys and values in both passes, and their gradients.
            rounds = 3 * (ranks - 1) + 1
            messages += rounds * len(calls)
            moved += rounds * sum(2 * 4 * math.prod(c.y_shape) / ranks for c in calls)
        return rates_of(self.comm).cost(messages, moved)


class SequenceRun(ParallelRun):
    """Runs models: functions are checked, and embeddings of positions replaced.

    Positional arguments of two axes or more are sequences (N, L, …); keyword arguments,
    such as masks, and others are replicated.
    """

    strategy = "sequence"
    reads_shards = True

    def _compared(self, args: Any, kwargs: Any) -> Any:
        return (args, kwargs) if self.is_replicated else ()

    @contextlib.contextmanager
    def sharding(
        self, model: Link, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Sharded:
        comm, name = self.comm, type(model).__name__
        scatter = functools.partial(scatter_sequence, comm)
        note_read = self.first_calls.note_read if self.is_replicated else None
        tracker = PlacementTracker(scatter, TOKENS, note_read=note_read)

        def shard(x: Array) -> Any:
            is_sequence = x.ndim > 1
            x = scatter(x) if is_sequence and self.is_replicated else x
            tracker.record(x, TOKENS if is_sequence else REPLICATE)
            return x

        def replicate(x: ArrayLike) -> Any:
            tracker.record(x, REPLICATE)
            return x

        args, kwargs = map_arrays(shard, args), map_arrays(replicate, kwargs)
        if self.is_replicated:
            tracker.note_shards(args)
        own = {
            "position_embedding": functools.partial(_position_embedding, comm, tracker)
        }
        whole = functools.partial(gather_sequence, comm)
        expected = "replicated or sharded sequences"
        gather = functools.partial(self.whole_result, name, tracker, expected, whole)
        with tracking(tracker), surrounding(SequenceChecker(comm, tracker, own)):
            yield args, kwargs, functools.partial(map_arrays, gather)


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


class SequenceStrategy(LinkStrategy):
    """Each rank has some tokens of every sequence."""

    name = "sequence"
    inputs = ("replicated", "sharded")

    def divide(
        self, model: Link, comm: Communicator, example: Sequence[object]
    ) -> tuple[list[LinkReplacement], SequenceRun]:
        found = SequenceReplacer(model, comm, example).replacements()
        return found, SequenceRun(comm, self.input == "replicated")
