"""A function applied to every example when it is read."""

from __future__ import annotations

from typing import Callable

from renga.core.types import Dataset
from renga.dataset import DatasetMixin


class TransformDataset(DatasetMixin):
    """Example ``i`` is ``transform`` of the example ``i`` of another data set.

    >>> from renga.datasets import TransformDataset
    >>> TransformDataset([1, 2, 3], lambda x: x * x)[2]
    9
    """

    def __init__(self, dataset: Dataset, transform: Callable[..., object]) -> None:
        self._dataset = dataset
        self._transform = transform

    def __len__(self) -> int:
        return len(self._dataset)

    def get_example(self, i: int) -> object:
        """The transformed example of index ``i``."""
        return self._transform(self._dataset[i])
