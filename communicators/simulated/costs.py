"""What a rank sends in a collective, and how long the collective takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from renga.communicators.simulated.machine import Machine
from renga.core.types import Array


class Cost(NamedTuple):
    """Of one rank in one collective."""

    messages: int
    bytes: int
    seconds: float


def all_reduce(machine: Machine, ranks: int, xs: Sequence[Array], dtype: str) -> Cost:
    """The cost of reducing arrays together, sent as ``dtype`` ("": their own)."""
    itemsize = 2 if dtype == "bfloat16" else np.dtype(dtype or xs[0].dtype).itemsize
    is_16_bit = itemsize == 2 and np.issubdtype(xs[0].dtype, np.floating)
    size = sum(x.size for x in xs) * itemsize
    sent = 2 * (ranks - 1) * size // ranks
    return Cost(2 * (ranks - 1), sent, machine.all_reduce(ranks, size, is_16_bit))


def all_to_all(machine: Machine, ranks: int, size: int) -> Cost:
    """The cost of a message of ``size`` bytes to and from each other rank."""
    others = ranks - 1
    return Cost(others, others * size, machine.all_to_all(ranks, size))


def broadcast(machine: Machine, ranks: int, size: int, is_root: bool) -> Cost:
    """The cost of ``size`` bytes from one rank to all others."""
    sends = ranks.bit_length() - 1 if is_root else 0
    return Cost(sends, sends * size, machine.broadcast(ranks, size))
