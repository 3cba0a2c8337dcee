"""Batch normalization of samples shared out over ranks, by parameters in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga.links.parallel.multi_node_normalization import (
    MultiNodeBatchNormalization,
    merge_moments,
)
from renga.links.parallel.relayout import EACH, PARTIAL, change_layout, sharded
from renga.links.parallel.shard import as_slice, lengths
from renga.variable import Variable

_FEATURES = sharded(0)  # how parameters lie


class SampleNormalization(MultiNodeBatchNormalization):
    """Of inputs (token, x, gamma, beta), the latter two of this rank's channels.

    What the ranks add up for the gradient of x has those of gamma and beta, too.

    Args:
        parts: the channels of each rank.
    """

    def __init__(
        self, comm: Any, eps: float, axis: tuple[int, ...], parts: Sequence[range]
    ) -> None:
        super().__init__(comm, eps, axis)
        self.own, self.parts = as_slice(parts[comm.rank]), lengths(parts)

    def _merge(self, x: Any, gamma: Any, beta: Any) -> tuple[Any, Any]:
        own = numpy.zeros((2, sum(self.parts)))
        own[:, self.own] = gamma, beta
        self.count, self.mean, self.var, whole = merge_moments(
            self.comm, x, self.axis, own
        )
        self.gamma = whole[0].astype(gamma.dtype)
        return self.gamma, whole[1].astype(beta.dtype)

    def _fused(self, x: Variable, gamma: Variable, gy: Variable) -> tuple[Any, ...]:
        return super()._fused(x, Variable(self.gamma), gy)

    def _wanted(self, own: numpy.ndarray, total: numpy.ndarray) -> numpy.ndarray:
        return total[:, self.own]

    def _composed(self, x: Variable, gamma: Variable, gy: Variable) -> tuple[Any, ...]:
        gamma = change_layout(gamma, self.comm, _FEATURES, EACH, self.parts)
        gx, *own = super()._composed(x, gamma, gy)
        way = (self.comm, PARTIAL, _FEATURES)
        return (gx, *(change_layout(g, *way, to_parts=self.parts) for g in own))
