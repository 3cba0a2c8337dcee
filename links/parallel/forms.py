"""Which parallel links take the place of serial ones, for each strategy."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Callable, TypeVar

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
