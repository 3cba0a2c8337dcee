"""How a channel-parallel link is made from a serial one."""

from __future__ import annotations

from typing import NamedTuple

from renga.core.parameter import Parameter
from renga.initializers import Constant

Layouts = tuple[str, str]  # of the input and the output


class LinkChoice(NamedTuple):
    """How a link is to be computed."""

    layouts: Layouts
    algorithm: str | None = None  # the cheapest one
    pieces: int | None = None  # as many chunks as the machine and a cost model suggest
    is_kept: bool = False  # as the serial link, on every rank


def values_of(param: Parameter | None) -> Constant | None:
    """An initializer that gives the values of a parameter; None for none."""
    return None if param is None else Constant(param.array, param.dtype)
