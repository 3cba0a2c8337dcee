"""Links of which every rank keeps the whole, and why."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from renga.core.link import Link
from renga.core.link.distinct_params import distinct_params
from renga.core.link.own_values import own_params, own_persistent
from renga.core.link.sharing_memory import sharing_memory
from renga.links.attention.multi_head_attention import MultiHeadAttention
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.forms import FORMS

_NAMES = {"W", "b", "gamma", "beta", "avg_mean", "avg_var", "N"}


def kept_links(model: Link, leaves: Collection[int]) -> dict[int, str]:
    """By the ``id`` of a link, why no channel-parallel link can replace it.

    Args:
        leaves: the ids of parameters that functions use outside of their links.
    """
    others = _sharing_links(model)
    kept: dict[int, str] = {}
    for link in dict.fromkeys(model.links()):
        reason = _reason(link, others.get(id(link), ""), leaves)
        if reason:
            kept[id(link)] = reason
    for attention in attentions(model):
        # Its projections are called by it, and sharded with it.
        reasons = [
            _reason(child, others.get(id(child), ""), ())
            for child in attention.children()
        ]
        reason = next(filter(None, reasons), kept.get(id(attention), ""))
        if reason:
            kept |= {id(link): reason for link in (attention, *attention.children())}
    return kept


def attentions(model: Link) -> list[MultiHeadAttention]:
    """The attentions of which each rank may have some heads."""
    links = dict.fromkeys(model.links())
    return [link for link in links if type(link) is MultiHeadAttention]


def _sharing_links(model: Link) -> dict[int, str]:
    """By the ``id`` of a link that shares parameters, which and with which link."""
    links = dict(model.namedlinks())
    found: dict[int, str] = {}
    groups = [(param.names, "is") for param in distinct_params(model)]
    for group in sharing_memory(model):
        groups.append((sum((each.names for each in group), ()), "has the memory of"))
    for names, relation in groups:
        owners = [links[name.rpartition("/")[0] or "/"] for name in names]
        for owner, name in zip(owners, names):
            others = [n for n, o in zip(names, owners) if o is not owner]
            if others:
                own = name.rpartition("/")[2]
                text = f"its {own} {relation} the parameter {others[0]}, too"
                found.setdefault(id(owner), text)
    return found


def _reason(link: Any, shared: str, leaves: Collection[int]) -> str:
    """Why no channel-parallel link can replace this one; empty if one can."""
    if type(link) not in FORMS["channel"]:
        return "no channel-parallel link of its kind"
    if shared:
        return shared
    params, persistent = own_params(link), own_persistent(link)
    if any(id(param) in leaves for param in params.values()):
        return "its parameters are used outside of it"
    if not all(param.is_initialized for param in params.values()):
        return "its parameters have no shape yet: pass an example of the input"
    if link.local_link_hooks or not params.keys() | persistent.keys() <= _NAMES:
        return "it has hooks or values of its own"
    if any(callable(getattr(type(link), name, None)) for name in vars(link)):
        return "a method of it has been replaced"
    if isinstance(link, BatchNormalization):
        if link.axis not in (None, (0,), (0, 2, 3)) or link.avg_mean.ndim != 1:
            return "it normalizes other axes than channels"
    return ""
