"""``chainer.memory_layouts``: renga's arrays have the axes that their shape says."""

from __future__ import annotations

from renga.core.types import ArrayLike

CUDNN_CHANNEL_FIRST_X = None
CUDNN_CHANNEL_LAST_X = "CUDNN_CHANNEL_LAST_X"
CUDNN_CHANNEL_FIRST_W = None
CUDNN_CHANNEL_LAST_W = "CUDNN_CHANNEL_LAST_W"


def get_raw_shape(x: ArrayLike) -> tuple[int, ...]:
    """The shape of an array or Variable."""
    return x.shape


def get_semantic_shape(
    x: ArrayLike, *, assumed_layout: object = None
) -> tuple[int, ...]:
    """The shape of an array or Variable."""
    return x.shape
