"""Attributes that Variables have of their graph, which copies of them lack."""

from __future__ import annotations

from typing import Any

from renga import _core

_PREFIX = "_graph_"
CREATOR_ATTRIBUTES = f"{_PREFIX}creator_attributes"
CREATOR_NAME = f"{_PREFIX}creator_name"
CREATOR_VIEW = f"{_PREFIX}creator_view"
NODE = f"{_PREFIX}node"


def leave_out_of_copies() -> None:
    """Has copies and pickles of Variables begin graphs of their own, as in Chainer."""
    own: Any = _core.Variable.__reduce__

    def reduce(self: Any) -> tuple[Any, ...]:
        rebuild, arguments, attributes = own(self)
        kept = {
            name: value
            for name, value in (attributes or {}).items()
            if not name.startswith(_PREFIX)
        }
        return rebuild, arguments, kept or None

    setattr(_core.Variable, "__reduce__", reduce)  # noqa: B010
