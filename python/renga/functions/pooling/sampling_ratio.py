"""How many points are taken of each cell of a region."""

from __future__ import annotations

from typing import Any

from renga.functions.pooling.roi import as_positive_pair


def as_ratios(name: str, sampling_ratio: Any) -> tuple[int | None, int | None]:
    """(along rows, along columns); TypeError unless integers above 0 or None."""
    if not isinstance(sampling_ratio, (tuple, list)):
        sampling_ratio = (sampling_ratio, sampling_ratio)
    given = tuple(1 if ratio is None else ratio for ratio in sampling_ratio)
    as_positive_pair(name, "sampling_ratio", given)
    down, across = sampling_ratio
    return down, across
