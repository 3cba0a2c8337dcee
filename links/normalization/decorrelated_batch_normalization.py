"""DecorrelatedBatchNormalization: batch normalization that whitens."""

from __future__ import annotations

import warnings
from typing import Any

import numpy

from renga.core.configuration import config
from renga.core.link import Link
from renga.core.serializer import AbstractSerializer, Deserializer
from renga.core.types import ArrayLike, DTypeLike
from renga.core.variable import Variable
from renga.functions import (
    decorrelated_batch_normalization,
    fixed_decorrelated_batch_normalization,
)
from renga.utils.argument import parse_kwargs
from renga.utils.extents import check_count, check_memory


class DecorrelatedBatchNormalization(Link):
    """Whitens groups of channels by batch statistics in training.

    Otherwise by running means and projections, updated by
    ``avg = decay avg + (1 - decay) statistic``.

    Shapes:
        x, y: (N, size, …)
        avg_mean: (groups, size / groups)
        avg_projection: (groups, size / groups, size / groups)

    Raises:
        ValueError: the channels cannot be divided into that many groups.

    Source: Huang et al., Decorrelated batch normalization, 2018.
    """

    avg_mean: Any
    avg_projection: Any

    def __init__(
        self,
        size: int,
        groups: int = 16,
        decay: float = 0.9,
        eps: float = 2e-5,
        dtype: DTypeLike = numpy.float32,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        groups = check_count(name, "groups", groups)
        n = check_count(name, "size", size, 0) // groups
        if size % groups:
            raise ValueError(f"{name}: expected {size} channels in {groups} groups")
        check_memory(name, (groups, n, n), dtype)
        self.avg_mean = numpy.zeros((groups, n), dtype)
        self.avg_projection = numpy.tile(numpy.eye(n, dtype=dtype), (groups, 1, 1))
        self.N = 0
        for name in ("avg_mean", "avg_projection", "N"):
            self.register_persistent(name)
        self.decay = decay
        self.eps = eps
        self.groups = groups

    def forward(self, x: ArrayLike, **kwargs: object) -> Variable:
        """The whitened ``x``.

        With ``finetune=True`` the running statistics become the mean of those of all
        batches since ``start_finetuning``.
        """
        (finetune,) = parse_kwargs(kwargs, ("finetune", False))
        if not config.train:
            return fixed_decorrelated_batch_normalization(
                x, self.avg_mean, self.avg_projection, groups=self.groups
            )
        decay = self.decay
        if finetune:
            self.N += not config.in_recomputing
            decay = 1 - 1 / self.N
        return decorrelated_batch_normalization(
            x,
            groups=self.groups,
            eps=self.eps,
            running_mean=self.avg_mean,
            running_projection=self.avg_projection,
            decay=decay,
        )

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the averages.

        Chainer before 7 kept one mean and one projection for all groups, which every
        group gets, with a UserWarning if there are several.
        """
        if isinstance(serializer, Deserializer):
            serializer = _OldAverages(serializer, self.groups)
        super().serialize(serializer)

    def start_finetuning(self) -> None:
        """Resets the averages of ``finetune``."""
        self.N = 0


class _OldAverages(Deserializer):
    """Repeats averages without an axis of groups."""

    def __init__(self, inner: Any, groups: int) -> None:
        self.inner = inner
        self.groups = groups

    def __getitem__(self, key: str) -> Any:
        return self.inner[key]

    def on_failure(self, undo: Any) -> None:
        self.inner.on_failure(undo)

    def __call__(self, key: str, value: Any) -> Any:
        if key not in ("avg_mean", "avg_projection"):
            return self.inner(key, value)
        saved = self.inner(key, None)
        if saved is None or saved.shape != value.shape[1:]:
            return self.inner(key, value)
        if self.groups > 1:
            warnings.warn(
                "DecorrelatedBatchNormalization: the file has the averages of an "
                "earlier algorithm, one for all groups",
                stacklevel=2,
            )
        repeated = numpy.broadcast_to(saved, value.shape)
        return repeated.astype(value.dtype)
