"""Optimizers for several ranks, with ChainerMN's names."""

from __future__ import annotations

from renga.communicators import Communicator
from renga.core.optimizer import GradientMethod
from renga.core.optimizer.base import check_optimizer
from renga.parallel.compression import CompressionHook, Compressor
from renga.parallel.data.optimizers.double_buffering_optimizer import (
    DoubleBufferingOptimizer,
)
from renga.parallel.data.optimizers.multi_node_optimizer import MultiNodeOptimizer

__all__ = ["create_multi_node_optimizer"]

_SHARDS = ("states", "gradients", "parameters")


def create_multi_node_optimizer(
    actual_optimizer: GradientMethod,
    communicator: Communicator,
    double_buffering: bool = False,
    zero_fill: bool = True,
    compression: Compressor | None = None,
    shard: str | None = None,
) -> MultiNodeOptimizer:
    """An optimizer that updates by the mean of all ranks' gradients.

    Args:
        actual_optimizer: makes the updates.
        communicator: of the ranks that train one model.
        double_buffering: whether gradients are reduced while the next ones are
            computed, and used one update late.
        zero_fill: whether a parameter without a gradient on all ranks gets zeros;
            otherwise it keeps none, unless compression sends what it has kept back of
            earlier ones.
        compression: how gradients are sent between nodes; there is none on one node.
        shard: ``"states"`` has each rank keep a shard of the optimizer's states, update
            its shard of the parameters, and get the others' (ZeRO-1); with
            ``"gradients"`` it keeps only its shard of the mean gradients, too (ZeRO-2);
            with ``"parameters"`` also of the parameters (ZeRO-3): the ranks of a node
            keep them once in shared memory, others gather them for use.

    Raises:
        TypeError: if ``actual_optimizer`` is no optimizer, or ``compression`` no
            compressor.
        ValueError: for compression with double buffering, or of a communicator that
            averages gradients in its own way; for other words as ``shard``, or one with
            double buffering.
    """
    check_optimizer("create_multi_node_optimizer", actual_optimizer)
    if shard not in (None, *_SHARDS) or (shard and double_buffering):
        raise ValueError(
            "create_multi_node_optimizer: expected shard to be None, or one of "
            f"{', '.join(_SHARDS)} without double buffering, got {shard!r}"
        )
    if not isinstance(compression, (Compressor, type(None))):
        raise TypeError(
            "create_multi_node_optimizer: expected a Compressor as compression, got "
            f"{compression!r}"
        )
    if compression is not None and double_buffering:
        raise ValueError(
            "create_multi_node_optimizer: expected compression without double "
            f"buffering, got {compression!r}"
        )
    optimizer: MultiNodeOptimizer
    if double_buffering:
        optimizer = DoubleBufferingOptimizer(actual_optimizer, communicator, zero_fill)
    else:
        optimizer = MultiNodeOptimizer(actual_optimizer, communicator, zero_fill, shard)
    if compression is not None and communicator.inter_size > 1:
        optimizer.add_bucket_hook(CompressionHook(compression, communicator))
    return optimizer
