"""Variables that links keep as attributes, of which a rank has those of a part."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from renga.core.link import Link
from renga.functions.util.link_states import is_state
from renga.parallel.placement.kept_by_link import PartKeptByLink
from renga.utils.containers import leaves


class KeptVariables:
    """Has what links keep of a call, such as a loss, read within calls only.

    A rank has the elements of the last micro-batch, or those of another stage not at
    all. The states of recurrent links are left out: they are put together.

    Args:
        model: whose links they are.
    """

    def __init__(self, model: Link) -> None:
        self._model = model

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Around a call of the model."""
        hidden = set()
        for link, name, value in self._attributes():
            if isinstance(value, PartKeptByLink):
                vars(link)[name] = value.value
                hidden.add((id(link), name))
        before = {(id(link), name): x for link, name, x in self._attributes()}
        try:
            yield
        finally:
            for link, name, value in self._attributes():
                key = id(link), name
                is_new = key in hidden or value is not before.get(key)
                if is_new and any(map(is_state, leaves(value))):
                    vars(link)[name] = PartKeptByLink(
                        f"{type(link).__name__}.{name}",
                        value,
                        "that of its own stages and of the last micro-batch",
                        "let the model return or report it",
                    )

    def _attributes(self) -> list[tuple[Link, str, Any]]:
        return [
            (link, name, value)
            for link in self._model.links()
            if not hasattr(link, "reset_state")
            for name, value in vars(link).items()
        ]
