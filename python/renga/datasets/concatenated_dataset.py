"""Data sets one after the other."""

from __future__ import annotations

from renga.core.types import Dataset
from renga.dataset import DatasetMixin


class ConcatenatedDataset(DatasetMixin):
    """The examples of the first data set, then of the second, and so on."""

    def __init__(self, *datasets: Dataset) -> None:
        self._datasets = datasets

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._datasets)

    def get_example(self, i: int) -> object:
        """The example of index ``i``, counted over all data sets."""
        length = len(self)
        if not -length <= i < length:
            raise IndexError(
                f"ConcatenatedDataset: expected an index below {length}, got {i}"
            )
        i %= length
        for dataset in self._datasets:
            if i < len(dataset):
                break
            i -= len(dataset)
        return dataset[i]
