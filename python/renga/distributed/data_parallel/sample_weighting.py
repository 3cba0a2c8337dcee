"""Weights that make the mean over ranks a mean over samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy

UNKNOWN_SAMPLES = -1


def number_of_samples(args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    """The number of samples in the arguments of a loss function.

    It is the length of the first argument that has one: of an array, of its first
    axis. None where no argument has a length.
    """
    for x in (*args, *kwargs.values()):
        if getattr(x, "ndim", 1) > 0 and hasattr(x, "__len__"):
            return len(x)
    return None


def sample_weight(samples: numpy.ndarray, rank: int) -> float:
    """What a rank's gradients are multiplied by before the mean over all ranks.

    Where a rank does not know its number of samples, all ranks that have some count
    alike.

    Args:
        samples: by rank, how many samples its gradients come from, or UNKNOWN_SAMPLES.
    """
    if samples.min() < 0:
        samples = samples != 0
    return float(samples[rank] / max(samples.mean(), 1e-9))
