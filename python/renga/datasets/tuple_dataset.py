"""Several sequences side by side, as tuples."""

from __future__ import annotations

from typing import Any

from renga.core.types import ArrayLike


class TupleDataset:
    """Example ``i`` is the tuple of the elements ``i`` of all data sets.

    >>> from renga.datasets import TupleDataset
    >>> TupleDataset([1.5, 2.5, 3.5], "abc")[1:]
    [(2.5, 'b'), (3.5, 'c')]

    Raises:
        ValueError: there is no data set, or lengths differ.
    """

    def __init__(self, *datasets: ArrayLike) -> None:
        if not datasets:
            raise ValueError("TupleDataset: expected data sets, got none")
        self._datasets = datasets
        length = len(datasets[0])
        for i, dataset in enumerate(datasets):
            if len(dataset) != length:
                raise ValueError(
                    f"TupleDataset: expected {length} examples as in dataset 0, "
                    f"got {len(dataset)} in dataset {i}"
                )

    def __getitem__(self, index: Any) -> Any:
        """A tuple, or a list of tuples for a slice."""
        columns = [dataset[index] for dataset in self._datasets]
        return list(zip(*columns)) if isinstance(index, slice) else tuple(columns)

    def __len__(self) -> int:
        # A shard may have hidden examples that another rank counts.
        return min(map(len, self._datasets))
