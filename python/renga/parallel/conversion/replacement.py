"""Replacement of a model's links by parallel ones."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from renga.core.link import Link
from renga.core.link.own_values import own_params, own_persistent
from renga.core.link.sharing_memory import share_arrays
from renga.links.attention.multi_head_attention import MultiHeadAttention
from renga.links.parallel.forms import FORMS
from renga.parallel.conversion.tracing import CalledLink
from renga.parallel.redistribute.cost import StepCost


class LinkReplacement(NamedTuple):
    """A serial link and the parallel link that replaces it, or why none does."""

    link: Link
    replacement: Any  # None: the link stays
    reason: str = ""  # why it stays
    cost: StepCost | None = None  # for inputs like the example; None without an example


class Replacer:
    """Finds what replaces each link of a model that has parameters of its own.

    A strategy derives its own, which estimates costs and may keep further links.

    Args:
        model: whose links are replaced.
        comm: the ranks, as parallel links take them.
        calls: of the model's links, for an example of its inputs.
    """

    #: The strategy whose parallel links it makes, and why other links stay.
    strategy: str
    others: str

    def __init__(self, model: Link, comm: Any, calls: Sequence[CalledLink]) -> None:
        self.model, self.comm, self.calls = model, comm, calls
        self.forms = FORMS[self.strategy]

    def replacements(self) -> list[LinkReplacement]:
        """One for each link with parameters, but those inside of a replaced one."""
        links, found = dict.fromkeys(self.model.links()), []
        wholes = {id(link): link for link in links if self.is_whole(link)}
        inside = {id(each) for link in wholes.values() for each in link.children()}
        for link in links:
            if id(link) in inside or not (own_params(link) or id(link) in wholes):
                continue
            new, reason, cost = None, self.reason(link), None
            if not reason:
                new, cost = self.make(link), self.cost(link)
                new.name = link.name
                _leave_out_gradients(link, new)
                _take_attributes(link, new)
            found.append(LinkReplacement(link, new, reason, cost))
        return found

    def is_whole(self, link: Link) -> bool:
        """Whether a link is replaced together with its children."""
        return type(link) is MultiHeadAttention and type(link) in self.forms

    def reason(self, link: Link) -> str:
        """Why a link stays; empty if it is replaced."""
        return "" if type(link) in self.forms else self.others

    def make(self, link: Link) -> Link:
        """The parallel link."""
        new: Link = self.forms[type(link)].from_link(link, self.comm)
        return new

    def cost(self, link: Link) -> StepCost | None:
        """Of a step with inputs like the example, if that is known."""
        raise NotImplementedError

    def calls_of(self, link: Link) -> list[CalledLink]:
        """Those of a link."""
        return [call for call in self.calls if call.link is link]


def _leave_out_gradients(link: Link, new: Link) -> None:
    """Has parameters that need no gradient need none in what replaces their link."""
    params = dict(new.namedparams())
    for path, param in link.namedparams():
        if path in params and not param.requires_grad:
            params[path].requires_grad = False


def _take_attributes(link: Link, new: Link) -> None:
    """Gives what replaces a link the attributes that the program has given the link."""
    known = {*own_params(link), *own_persistent(link)}
    for name, value in vars(link).items():
        if name not in known and name[0] != "_" and not hasattr(new, name):
            vars(new)[name] = value


def copy_with_replacements(
    model: Link,
    replacements: Mapping[int, Link],
    class_of: Callable[[Link], type[Link]] = type,
) -> Link:
    """A deep copy of a model in which some links are replaced.

    Links of the model that share a parameter, or the array of one, do so in the copy,
    too, if their replacements have whole parameters.

    Args:
        replacements: by the ``id`` of the links that they replace. They are not copied.
        class_of: the class of the new model's link, from the link that it is a copy
            of, or the replacement: its own class, or one derived from that.
    """
    links = dict.fromkeys(model.links())
    memo = _share_parameters(links, replacements)
    for link in links:
        new = replacements.get(id(link), link)
        kind = class_of(new)
        if new is link or kind is not type(new):
            new = kind.__new__(kind)
        memo[id(link)] = new
    for link in links:
        source, new = replacements.get(id(link)), memo[id(link)]
        if source is None:
            vars(new).update(copy.deepcopy(vars(link), memo))
        elif source is not new:
            vars(new).update(vars(source))
    copied: Link = memo[id(model)]
    share_arrays(model, copied)
    return copied


def _share_parameters(
    links: Iterable[Link], replacements: Mapping[int, Link]
) -> dict[int, Any]:
    """Has replacements of links with one parameter hold one parameter.

    Returns:
        By the ``id`` of a parameter, the one that replaces it: a memo of ``deepcopy``.
    """
    memo: dict[int, Any] = {}
    for link in links:
        if id(link) not in replacements:
            continue
        by_path = dict(replacements[id(link)].namedlinks())
        for name, param in link.namedparams():
            path, _, own = name.rpartition("/")
            attributes = vars(by_path[path or "/"])
            attributes[own] = memo.setdefault(id(param), attributes[own])
    return memo
