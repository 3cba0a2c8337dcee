"""Several sequences side by side, as dictionaries."""

from __future__ import annotations

from typing import Any

from renga.core.types import Dataset


class DictDataset:
    """Example ``i`` is the dictionary of the elements ``i`` of all data sets.

    Raises:
        ValueError: there is no data set, or lengths differ.
    """

    def __init__(self, **datasets: Dataset) -> None:
        if not datasets:
            raise ValueError("DictDataset: expected data sets, got none")
        self._datasets = datasets
        length = len(next(iter(datasets.values())))
        for key, dataset in datasets.items():
            if len(dataset) != length:
                raise ValueError(
                    f"DictDataset: expected {length} examples as in "
                    f"{next(iter(datasets))!r}, got {len(dataset)} in {key!r}"
                )

    def __getitem__(self, index: Any) -> Any:
        """A dictionary, or a list of dictionaries for a slice."""
        columns = {key: dataset[index] for key, dataset in self._datasets.items()}
        if not isinstance(index, slice):
            return columns
        return [dict(zip(columns, row)) for row in zip(*columns.values())]

    def __len__(self) -> int:
        # A shard may have hidden examples that another rank counts.
        return min(map(len, self._datasets.values()))
