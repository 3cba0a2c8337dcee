"""Running statistics of batch normalization that follow whole batches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

from renga.core.configuration import config
from renga.core.link import Link
from renga.core.link_hook import (
    LinkHook,
    _ForwardPostprocessCallbackArgs,
    _ForwardPreprocessCallbackArgs,
)
from renga.links.normalization.batch_normalization import BatchNormalization


class _Part(NamedTuple):
    """The statistics of one micro-batch, in float64."""

    size: int  # the numbers of a channel
    mean: numpy.ndarray
    var: numpy.ndarray  # unbiased


class RunningStatistics(LinkHook):
    """Around the forward passes of a stage; ``update`` ends a batch.

    Links normalize each micro-batch by its own statistics, which are kept. At the end,
    running statistics are updated by those of all samples of the batch, once for each
    call of a link in a pass.
    """

    name = "pipeline running statistics"

    def __init__(self) -> None:
        # A call in a pass has its link, and the micro-batches so far.
        self._calls: list[tuple[BatchNormalization, list[_Part]]] = []
        self._next = 0
        self._kept: tuple[float, Any, Any] | None = None

    def added(self, link: Link) -> None:
        """Begins a pass."""
        self._next = 0

    def deleted(self, link: Link) -> None:
        """Ends a pass."""
        self._kept = None

    def forward_preprocess(self, args: _ForwardPreprocessCallbackArgs) -> None:
        """Has the link replace its running statistics by those of its input."""
        link = args.link
        if not self._is_updated(args) or link.avg_mean is None:
            return
        self._kept = link.decay, link.avg_mean.copy(), link.avg_var.copy()
        link.decay = 0.0

    def forward_postprocess(self, args: _ForwardPostprocessCallbackArgs) -> None:
        """Takes these, and restores the running statistics."""
        link = args.link
        if self._kept is None or not self._is_updated(args):
            return
        mean, var = link.avg_mean.astype("d"), link.avg_var.astype("d")
        link.decay, link.avg_mean[...], link.avg_var[...] = self._kept
        self._kept = None
        if args.out.is_meta:  # another stage computes it
            return
        x: Any = args.args[0]
        size = x.size // mean.size
        if size == 0:  # running statistics do not change
            return
        if self._next == len(self._calls):
            self._calls.append((link, []))
        self._calls[self._next][1].append(_Part(size, mean, var))
        self._next += 1

    def update(self) -> None:
        """Updates the running statistics by those of the batch."""
        for link, parts in self._calls:
            count = sum(part.size for part in parts)
            mean = sum(part.size * part.mean for part in parts) / count
            squares = sum(
                part.var * (part.size - 1) + part.size * (part.mean - mean) ** 2
                for part in parts
            )
            var = squares / max(count - 1, 1)
            for running, statistic in ((link.avg_mean, mean), (link.avg_var, var)):
                running[...] = link.decay * running + (1 - link.decay) * statistic
        self._calls = []

    @staticmethod
    def _is_updated(args: Any) -> bool:
        is_normalization = isinstance(args.link, BatchNormalization)
        return is_normalization and config.train and not args.kwargs.get("finetune")
