"""Deep gradient compression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from renga import _core
from renga.core.types import Array
from renga.parallel.compression.sparsification import TopK, count_of, take_largest
from renga.parallel.compression.state import State
from renga.utils.argument import check_count, check_number

_WARM_UP_RATIOS = (0.25, 0.063, 0.015, 0.004)


class DGC(TopK):
    """Sends the largest sums of momentum, which each node computes on its own.

    The momentum is this compressor's, so the optimizer is to be SGD without any.

    Args:
        ratio: of the elements that are sent, in (0, 1].
        momentum: in [0, 1).
        clip: the norm to which each parameter's gradient is clipped, over the square
            root of the number of nodes; None for no limit.
        warmup_steps: for so many steps each, the ratios .25, .063, .015 and .004 come
            before smaller ones.

    Source: Lin et al., Deep gradient compression, ICLR 2018.
    """

    scaled_states = frozenset({"residual", "velocity"})

    def __init__(
        self,
        ratio: float = 0.001,
        momentum: float = 0.9,
        clip: float | None = None,
        warmup_steps: int = 0,
    ) -> None:
        super().__init__(ratio)
        check_number("DGC: momentum", momentum)
        if not 0 <= momentum < 1:
            raise ValueError(f"DGC: expected a momentum in [0, 1), got {momentum}")
        if clip is not None:
            check_number("DGC: clip", clip)
            if clip <= 0:
                raise ValueError(f"DGC: expected a clip above 0, got {clip}")
        check_count("DGC: warmup_steps", warmup_steps, 0)
        self.momentum = momentum
        self.clip = clip
        self.warmup_steps = warmup_steps

    def compress(self, x: Array, state: State) -> Sequence[Array]:
        count = count_of(x, self.ratio_at(state.step))
        residual = state.zeros_like("residual", x)
        velocity = _scaled(state.zeros_like("velocity", x), self.momentum)
        if not _core.compression.accumulate(self._clipped(x, state), velocity):
            return take_largest(numpy.full_like(x, numpy.nan), count)
        state["velocity"] = velocity
        residual += velocity
        indices, values = take_largest(residual, count)
        velocity.reshape(-1)[indices] = 0
        return indices, values

    def ratio_at(self, step: int) -> float:
        """The ratio of a step, counted from 0."""
        if step < self.warmup_steps * len(_WARM_UP_RATIOS):
            return max(self.ratio, _WARM_UP_RATIOS[step // self.warmup_steps])
        return self.ratio

    def _clipped(self, x: Array, state: State) -> Array:
        if self.clip is None:
            return x
        limit = state.loss_scale * self.clip / numpy.sqrt(state.nodes)
        norm = float(numpy.linalg.norm(x))
        return x if norm <= limit else _scaled(x, limit / norm)


def _scaled(x: Array, factor: float) -> Array:
    # An array also of an array without axes.
    scaled: Array = numpy.empty_like(x)
    numpy.multiply(x, numpy.float32(factor), out=scaled)
    return scaled
