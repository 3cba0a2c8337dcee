"""What tables that are derived from others read from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Mode = Any  # tuple, dict or None


class Table(Protocol):
    """What a data set implements; ``TabularDataset`` says what it means."""

    def __len__(self) -> int: ...
    @property
    def keys(self) -> tuple[str, ...]: ...
    @property
    def mode(self) -> Mode: ...
    def get_examples(self, indices: Any, key_indices: Any) -> tuple[Any, ...]: ...
    def convert(self, data: object) -> Any: ...


class Source:
    """Reads from ``dataset``; a subclass overrides some methods."""

    def __init__(self, dataset: Table) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    @property
    def keys(self) -> tuple[str, ...]:
        return self.dataset.keys

    @property
    def mode(self) -> Mode:
        return self.dataset.mode

    def get_examples(
        self, indices: Any, key_indices: Sequence[int] | None
    ) -> tuple[Any, ...]:
        return self.dataset.get_examples(indices, key_indices)

    def convert(self, data: object) -> Any:
        return self.dataset.convert(data)
