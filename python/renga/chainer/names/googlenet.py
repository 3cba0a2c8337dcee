"""Private functions of ``chainer.links.model.vision.googlenet``."""

from __future__ import annotations

from renga import functions as F
from renga.chainer.names.links import (
    available as available,
    concat_examples as concat_examples,
)
from renga.core.types import ArrayLike
from renga.core.variable import Variable


def _max_pooling_2d(x: ArrayLike) -> Variable:
    return F.max_pooling_2d(x, ksize=3, stride=2)


def _local_response_normalization(x: ArrayLike) -> Variable:
    return F.local_response_normalization(x, n=5, k=1, alpha=1e-4 / 5)


def _average_pooling_2d_k5(x: ArrayLike) -> Variable:
    return F.average_pooling_2d(x, ksize=5, stride=3)


def _average_pooling_2d_k7(x: ArrayLike) -> Variable:
    return F.average_pooling_2d(x, ksize=7, stride=1)


def _dropout(x: ArrayLike) -> Variable:
    return F.dropout(x, ratio=0.4)
