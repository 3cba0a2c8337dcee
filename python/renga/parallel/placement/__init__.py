"""How a variable is placed on the ranks of a communicator.

The words are those of PyTorch's DTensor and of GSPMD. A value and its gradient need not
be placed alike: ``gradient`` tells how the gradient is placed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union


@dataclass(frozen=True)
class Replicate:
    """Every rank has the whole value.

    Args:
        summed_gradient: False if all ranks compute the same from it, so that each finds
            the whole gradient. True if each rank computes something else from it, for
            instance from its shard of other variables: then each finds a part of the
            gradient, and their sum is the whole. This is the value after Megatron-LM's
            operator f, whose backward pass is an all-reduce.
    """

    summed_gradient: bool = False

    @property
    def gradient(self) -> Placement:
        return PARTIAL if self.summed_gradient else self


@dataclass(frozen=True)
class Shard:
    """Each rank has one range of an axis, in rank order (see :mod:`shard_ranges`).

    A negative axis counts from the last one.
    """

    axis: int

    @property
    def gradient(self) -> Placement:
        return self


@dataclass(frozen=True)
class Partial:
    """The value is the sum of what the ranks have: a reduction is pending.

    Args:
        op: ``"sum"``.

    Raises:
        ValueError: for another operation.
    """

    op: str = "sum"

    def __post_init__(self) -> None:
        if self.op != "sum":
            raise ValueError(f"Partial: expected op to be 'sum', got {self.op!r}")

    @property
    def gradient(self) -> Placement:
        return REPLICATE_SUMMED


Placement = Union[Replicate, Shard, Partial]

REPLICATE = Replicate()
REPLICATE_SUMMED = Replicate(summed_gradient=True)
PARTIAL = Partial()
BATCH, CHANNEL = Shard(0), Shard(1)

# The names of placements in arguments, for images (N, C, H, W) and sequences (N, L, E).
LAYOUTS: Mapping[str, Placement] = {
    "replicated": REPLICATE,
    "batch": BATCH,
    "channel": CHANNEL,
    "rows": Shard(2),
    "columns": Shard(3),
    "features": Shard(-1),
}


def as_placement(layout: str | Placement) -> Placement:
    """The placement of that name, or itself.

    Raises:
        ValueError: there is no placement of that name.
    """
    if not isinstance(layout, str):
        return layout
    if layout not in LAYOUTS:
        raise ValueError(
            f"layout: expected one of {', '.join(LAYOUTS)}, got {layout!r}"
        )
    return LAYOUTS[layout]
