"""A data set of empty examples, for ranks that get no data."""

from __future__ import annotations

from renga.core.types import Dataset


def create_empty_dataset(dataset: Dataset) -> list[tuple[()]]:
    """As many empty tuples as ``dataset`` has examples.

    It is for a rank whose part of the model gets its inputs from other ranks.
    """
    return [()] * len(dataset)
