"""Replacement of serial links by channel-parallel ones with the same weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from renga.communicators import Communicator
from renga.core.link import Link
from renga.links.attention.multi_head_attention import MultiHeadAttention
from renga.links.connection.embed_id import EmbedID
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.channel.attention import ParallelMultiHeadAttention
from renga.parallel.channel.kept_links import attentions, kept_links
from renga.parallel.channel.layout_search import choose_layouts, cost_of_call
from renga.parallel.channel.makers import (
    MAKERS,
    LinkChoice,
    vocab_embed_id,
)
from renga.parallel.conversion.replacement import LinkReplacement
from renga.parallel.conversion.tracing import Call, LayoutGroups, Trace, trace
from renga.parallel.redistribute.cost import Cost, rates_of

_REPLICATED = ("replicated", "replicated")
_KEPT_BY_PLAN = LinkChoice(_REPLICATED, is_kept=True)


def channel_replacements(
    model: Link,
    comm: Communicator,
    inputs: Sequence[Any],
    choices: Mapping[str, LinkChoice] | None = None,
    output: str = "replicated",
) -> list[LinkReplacement]:
    """A replacement for every link of a model that has parameters of its own.

    With example ``inputs`` the model is run once, and activations stay sharded between
    links where every operation on them allows it; without, they are replicated.

    Args:
        choices: by the paths of links, in the place of what a cost model chooses.
            Other links are kept.
        output: ``sharded`` if the outputs of the model stay sharded.

    Raises:
        ValueError: outputs shall stay sharded and cannot, or there is no example; or a
            plan shards the input or output of a link that has to be kept.
    """
    traced = trace_channels(model, inputs, output, follows_states=True)
    if output == "sharded":
        _require_sharded_outputs(traced)
    layouts_of = choose_layouts(traced, comm) if choices is None else None
    paths = {id(link): path for path, link in reversed(list(model.namedlinks()))}

    def choice_of(link: Link) -> LinkChoice:
        if layouts_of is not None:
            return LinkChoice(layouts_of(link))
        return (choices or {}).get(paths[id(link)], _KEPT_BY_PLAN)

    replacements, inside = [], set[int]()
    for attention in attentions(model):
        if id(attention) not in traced.kept and not choice_of(attention).is_kept:
            replacements.append(_shard_heads(attention, comm, traced))
            inside.update(id(child) for child in attention.children())
    for link in dict.fromkeys(model.links()):
        if link._params and id(link) not in inside:
            choice, reason = choice_of(link), traced.kept.get(id(link))
            _require_replicated_if_kept(paths[id(link)], choice, reason)
            replacements.append(_replace(link, comm, choice, traced))
    return replacements


def trace_channels(
    model: Link,
    inputs: Sequence[Any],
    output: str = "replicated",
    follows_states: bool = False,
) -> Trace:
    """Runs the model, as ``trace`` does, and finds layouts of its activations.

    Without ``inputs`` it is not run, and nothing is known but which links are kept.
    """
    traced = Trace([], LayoutGroups())
    if inputs:
        traced = trace(model, inputs, tuple(MAKERS), output, follows_states)
    kept = kept_links(model, traced.leaves)
    replicated = {id(call.link) for call in traced.attended} | set(kept)
    for link in attentions(model):
        replicated.update(id(child) for child in link.children())
    for call in traced.calls:
        # Elements of vectors are channels only where they are the second axis.
        is_sequence = isinstance(call.link, EmbedID) and len(call.y_shape) != 2
        if is_sequence or id(call.link) in replicated:
            traced.groups.require_replicated(call.x)
            traced.groups.require_replicated(call.y)
        if isinstance(call.link, EmbedID):
            traced.groups.exclude(call.y, "batch")
    for call in traced.attended:
        if id(call.link) in kept:
            traced.groups.require_replicated(call.y)
    return traced._replace(kept=kept)


def _require_sharded_outputs(traced: Trace) -> None:
    groups = traced.groups
    of_links = {groups.find(call.y) for call in (*traced.calls, *traced.attended)}
    if not traced.outputs:
        raise ValueError(
            "parallelize: expected an example of the input for sharded outputs"
        )
    for y, maker in traced.outputs.items():
        if groups.find(y) not in of_links or not groups.choices(y):
            raise ValueError(
                "parallelize: expected outputs of links, which can stay sharded, or "
                f"pointwise functions of them, got {y.shape} of {maker}"
            )


def _require_replicated_if_kept(
    path: str, choice: LinkChoice, reason: str | None
) -> None:
    """Raises ValueError where a plan shards what a kept link takes or returns."""
    if reason and choice.layouts != _REPLICATED:
        raise ValueError(
            f"parallelize: expected the model that the plan was made for, got one in "
            f"which {path} cannot be sharded: {reason}"
        )


def _shard_heads(
    link: MultiHeadAttention, comm: Communicator, traced: Trace
) -> LinkReplacement:
    new = ParallelMultiHeadAttention.from_link(link, comm)
    new.name = link.name
    calls = [call for call in traced.calls if call.link is link.out_proj]
    # The all-reduces of y and of the gradient of x.
    cost = _cost_of_all_reduces(comm, 2, calls[0].y_shape) if calls else None
    return LinkReplacement(link, new, "", cost)


def _cost_of_all_reduces(comm: Communicator, count: int, shape: Sequence[int]) -> Cost:
    rates, others = rates_of(comm), comm.size - 1
    moved = 2 * count * 4 * math.prod(shape) * others / comm.size
    return Cost(2 * count * others * rates.alpha + moved * rates.beta, 0, moved)


def _replace(
    link: Link, comm: Communicator, choice: LinkChoice, traced: Trace
) -> LinkReplacement:
    reason = traced.kept.get(id(link), "the plan keeps it" if choice.is_kept else "")
    attended = [call for call in traced.attended if call.link is link]
    if not reason and isinstance(link, EmbedID) and (attended or not traced.calls):
        return _replace_vocabulary(link, comm, attended, traced.groups)
    if not reason and isinstance(link, BatchNormalization):
        is_replicated = choice.layouts == _REPLICATED
        reason = "its input and output are replicated" if is_replicated else ""
    if reason:
        return LinkReplacement(link, None, reason)
    call = next((call for call in traced.calls if call.link is link), None)
    new = MAKERS[type(link)](link, comm, choice, call)
    new.name = link.name
    cost = None if call is None else cost_of_call(link, comm, choice.layouts, call)
    return LinkReplacement(link, new, "", cost)


def _replace_vocabulary(
    link: Any, comm: Communicator, attended: Sequence[Call], groups: LayoutGroups
) -> LinkReplacement:
    """For an embedding whose weight gives the scores of a vocabulary, too."""
    can_stay = bool(attended) and all(groups.choices(call.y) for call in attended)
    new = vocab_embed_id(link, comm, "channel" if can_stay else "replicated")
    new.name = link.name
    if not attended:
        return LinkReplacement(link, new)
    # Vectors and the gradients of x are all-reduced, and replicated scores gathered.
    communication, _, moved = _cost_of_all_reduces(comm, 2, attended[0].x_shape)
    if not can_stay:
        rates, others = rates_of(comm), comm.size - 1
        gathered = 4 * math.prod(attended[0].y_shape) * others / comm.size
        communication += others * rates.alpha + gathered * rates.beta
        moved += gathered
    return LinkReplacement(link, new, "", Cost(communication, 0, moved))
