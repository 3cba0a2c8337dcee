"""Replacement of serial links by links for sharded sequences."""

from __future__ import annotations

import math
from collections.abc import Sequence

from renga.communicators import Communicator
from renga.core.link import Link
from renga.links.attention.multi_head_attention import MultiHeadAttention
from renga.links.connection.linear import Linear
from renga.parallel.conversion.replacement import Replacer
from renga.parallel.conversion.tracing import trace
from renga.parallel.redistribute.cost import StepCost, rates_of


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
        kinds = (MultiHeadAttention,)
        super().__init__(model, comm, trace(model, inputs, kinds).calls)
        self._has_example = bool(inputs)

    def reason(self, link: Link) -> str:
        is_lazy = any(not param.is_initialized for param in link.params())
        if is_lazy and not isinstance(link, Linear):
            return "its parameters have no shape yet: pass an example of the input"
        return super().reason(link)

    def cost(self, link: Link) -> StepCost | None:
        """Of a step: all-reduces of gradients, and messages of ring attention."""
        calls = self.calls_of(link)
        if not self._has_example or (self.is_whole(link) and not calls):
            return None
        rates, others = rates_of(self.comm), self.comm.size - 1
        sizes = [4 * param.size for param in link.params()]
        messages = 2 * len(sizes) * others
        moved = 2 * sum(sizes) * others / self.comm.size
        for call in calls:
            # Keys and values in both passes, and their gradients.
            messages += 3 * others + 1
            shard = 2 * 4 * math.prod(call.y_shape) / self.comm.size
            moved += shard * (3 * others + 1 if others else 0)
        return StepCost(messages * rates.alpha + moved * rates.beta, 0, moved)
