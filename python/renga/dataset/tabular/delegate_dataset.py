"""DelegateDataset: a table derived from another."""

from __future__ import annotations

from typing import Any

from renga.dataset.tabular.tabular_dataset import Mode, TabularDataset


class DelegateDataset(TabularDataset):
    """Reads from ``dataset``; a subclass overrides some methods."""

    def __init__(self, dataset: TabularDataset) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    @property
    def keys(self) -> tuple[str, ...]:
        return self.dataset.keys

    @property
    def mode(self) -> Mode:
        return self.dataset.mode

    def get_examples(self, indices: Any, key_indices: Any) -> tuple[Any, ...]:
        return self.dataset.get_examples(indices, key_indices)

    def convert(self, data: Any) -> Any:
        return self.dataset.convert(data)
