"""What tables that are derived from others read from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Protocol, Union

import numpy

Mode = Any  # tuple, dict or None
Rows = Union[slice, Sequence[int], numpy.ndarray, None]
"""Indices of rows; None for all."""
Keys = Optional[Sequence[int]]
"""Indices of keys; None for all."""
Column = Union[numpy.ndarray, Sequence[Any]]
"""The values of one key."""
Columns = tuple[Column, ...]


class Table(Protocol):
    """What a data set implements; ``TabularDataset`` says what it means."""

    def __len__(self) -> int: ...
    @property
    def keys(self) -> tuple[str, ...]: ...
    @property
    def mode(self) -> Mode: ...
    def get_examples(self, indices: Rows, key_indices: Keys) -> Columns: ...
    def convert(self, data: object) -> object: ...


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

    def get_examples(self, indices: Rows, key_indices: Keys) -> Columns:
        return self.dataset.get_examples(indices, key_indices)

    def convert(self, data: object) -> object:
        return self.dataset.convert(data)
