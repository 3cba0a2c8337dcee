"""Optimizers for several ranks, with ChainerMN's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from renga.distributed.optimizers.double_buffering_optimizer import (
    DoubleBufferingOptimizer,
)
from renga.distributed.optimizers.multi_node_optimizer import MultiNodeOptimizer

if TYPE_CHECKING:
    from renga.communicators import Communicator

__all__ = ["create_multi_node_optimizer"]


def create_multi_node_optimizer(
    actual_optimizer: Any,
    communicator: Communicator,
    double_buffering: bool = False,
    zero_fill: bool = True,
) -> MultiNodeOptimizer:
    """An optimizer that updates by the mean of all ranks' gradients.

    Args:
        actual_optimizer: makes the updates.
        communicator: of the ranks that train one model.
        double_buffering: whether gradients are reduced while the next ones are
            computed, and used one update late.
        zero_fill: whether a parameter without a gradient on all ranks gets zeros;
            otherwise it keeps none.
    """
    kind = DoubleBufferingOptimizer if double_buffering else MultiNodeOptimizer
    return kind(actual_optimizer, communicator, zero_fill)
