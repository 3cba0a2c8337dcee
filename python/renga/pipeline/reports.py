"""What the micro-batches of a pipeline report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from renga.variable import as_array


def means(
    observations: Mapping[int, Mapping[str, Any]], sizes: Sequence[int]
) -> dict[str, float]:
    """The means over samples of what micro-batches of one or more batches reported.

    Args:
        observations: of micro-batches by their numbers.
        sizes: numbers of samples of the micro-batches of a batch.
    """
    values: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for i, observation in observations.items():
        for key, value in observation.items():
            values[key].append((float(as_array(value)), sizes[i % len(sizes)]))
    return {
        key: float(numpy.average([v for v, _ in pairs], weights=[n for _, n in pairs]))
        for key, pairs in values.items()
    }
