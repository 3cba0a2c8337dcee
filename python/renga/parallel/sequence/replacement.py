"""Replacement of serial links by links for sharded sequences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from renga.communicators import Communicator
from renga.core.link import Link
from renga.links.attention.multi_head_attention import MultiHeadAttention
from renga.links.connection.embed_id import EmbedID
from renga.links.connection.linear import Linear
from renga.links.normalization.layer_normalization import LayerNormalization
from renga.links.normalization.rms_normalization import RMSNormalization
from renga.links.parallel.sequence.attention import SequenceMultiHeadAttention
from renga.links.parallel.sequence.links import (
    SequenceEmbedID,
    SequenceLayerNormalization,
    SequenceLinear,
    SequenceRMSNormalization,
)
from renga.parallel.conversion.replacement import LinkReplacement
from renga.parallel.conversion.tracing import Call, trace
from renga.parallel.redistribute.cost import Cost, rates_of

_MAKERS: dict[type, Callable[[Any, Any], Any]] = {
    EmbedID: SequenceEmbedID.from_link,
    LayerNormalization: SequenceLayerNormalization.from_link,
    Linear: SequenceLinear.from_link,
    MultiHeadAttention: SequenceMultiHeadAttention.from_link,
    RMSNormalization: SequenceRMSNormalization.from_link,
}


def sequence_replacements(
    model: Link, comm: Communicator, inputs: Sequence[Any]
) -> list[LinkReplacement]:
    """A replacement for every link of a model that has parameters of its own.

    The new links take this rank's tokens.

    Args:
        inputs: examples of replicated inputs, to estimate costs from; may be empty.
    """
    calls: Sequence[Call] = []
    if inputs:
        calls = trace(model, inputs, (MultiHeadAttention,)).calls
    replacements = []
    links = dict.fromkeys(model.links())
    attentions = [link for link in links if type(link) is MultiHeadAttention]
    inside = {id(child) for link in attentions for child in link.children()}
    for link in links:
        is_attention = link in attentions
        if id(link) in inside or not (link._params or is_attention):
            continue
        make = _MAKERS.get(type(link))
        reason = "" if make else "its functions are checked when it runs"
        is_lazy = any(not param.is_initialized for param in link.params())
        if is_lazy and not isinstance(link, Linear):
            reason = "its parameters have no shape yet: pass an example of the input"
        if make is None or reason:
            replacements.append(LinkReplacement(link, None, reason))
            continue
        own = [call for call in calls if call.link is link]
        is_known = bool(inputs) and (own or not is_attention)
        cost = _cost(link, comm, own) if is_known else None
        replacements.append(LinkReplacement(link, make(link, comm), "", cost))
    return replacements


def _cost(link: Link, comm: Communicator, calls: Sequence[Call]) -> Cost:
    """Of a step: all-reduces of gradients, and messages of ring attention."""
    rates, others = rates_of(comm), comm.size - 1
    sizes = [4 * param.size for param in link.params()]
    messages = 2 * len(sizes) * others
    moved = 2 * sum(sizes) * others / comm.size
    for call in calls:
        # Keys and values in both passes, and their gradients.
        messages += 3 * others + 1
        shard = 2 * 4 * math.prod(call.y_shape) / comm.size
        moved += shard * (3 * others + 1 if others else 0)
    return Cost(messages * rates.alpha + moved * rates.beta, 0, moved)
