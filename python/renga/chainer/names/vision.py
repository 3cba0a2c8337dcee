"""Names of ``chainer.links.model.vision.resnet`` and ``vgg``."""

from __future__ import annotations

from importlib.util import find_spec

from renga import functions as F
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.dataset.convert import concat_examples

available = find_spec("PIL") is not None

__all__ = ["available", "concat_examples"]


def _global_average_pooling_2d(x: ArrayLike) -> Variable:
    """The mean of each channel's image, as (N, C)."""
    n, channels, *size = x.shape
    return F.reshape(F.average_pooling_2d(x, tuple(size), stride=1), (n, channels))


def _max_pooling_2d(x: ArrayLike) -> Variable:
    return F.max_pooling_2d(x, ksize=2)
