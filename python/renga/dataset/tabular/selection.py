"""Selections of rows and columns, and other forms of rows."""

from __future__ import annotations

from typing import Any

import numpy

from renga.dataset.tabular.tabular_dataset import Mode, TabularDataset

_slice = slice


class Slicer:
    """The value of ``dataset.slice``: indexing it selects rows and columns."""

    def __init__(self, dataset: TabularDataset) -> None:
        self._dataset = dataset

    def __getitem__(self, index: Any) -> TabularDataset:
        rows, keys = index if isinstance(index, tuple) else (index, None)
        dataset = self._dataset
        if isinstance(rows, (int, numpy.integer)):
            raise TypeError(
                f"slice: expected rows as a slice or a list, got {rows}; a single row "
                "is dataset[i]"
            )
        rows = _rows(rows, len(dataset))
        key_indices = None if keys is None else _positions(dataset.keys, keys)
        if keys is None or isinstance(keys, tuple):
            mode = dataset.mode
        else:
            mode = None
        return Selection(dataset, rows, key_indices, mode)


class Selection(TabularDataset):
    """Selected rows and columns of a data set."""

    def __init__(
        self,
        dataset: TabularDataset,
        rows: Any,
        key_indices: tuple[int, ...] | None,
        mode: Mode,
    ) -> None:
        self._dataset = dataset
        self._rows = rows
        self._key_indices = key_indices
        self._mode = mode

    def __len__(self) -> int:
        if isinstance(self._rows, _slice):
            return len(range(*self._rows.indices(len(self._dataset))))
        return len(self._rows)

    @property
    def keys(self) -> tuple[str, ...]:
        keys = self._dataset.keys
        chosen = self._key_indices
        return keys if chosen is None else tuple(keys[k] for k in chosen)

    @property
    def mode(self) -> Mode:
        return self._mode

    def get_examples(self, indices: Any, key_indices: Any) -> tuple[Any, ...]:
        chosen = self._key_indices
        if chosen is None:
            chosen = key_indices
        elif key_indices is not None:
            chosen = tuple(chosen[k] for k in key_indices)
        rows = compose(self._rows, indices, len(self._dataset))
        return self._dataset.get_examples(rows, chosen)

    def convert(self, data: Any) -> Any:
        return self._dataset.convert(data)


class WithMode(TabularDataset):
    """A data set whose rows have another form."""

    def __init__(self, dataset: TabularDataset, mode: Mode) -> None:
        self._dataset = dataset
        self._mode = mode

    def __len__(self) -> int:
        return len(self._dataset)

    @property
    def keys(self) -> tuple[str, ...]:
        return self._dataset.keys

    @property
    def mode(self) -> Mode:
        return self._mode

    def get_examples(self, indices: Any, key_indices: Any) -> tuple[Any, ...]:
        return self._dataset.get_examples(indices, key_indices)

    def convert(self, data: Any) -> Any:
        return self._dataset.convert(data)


def compose(first: Any, second: Any, length: int) -> Any:
    """``second``'s selection from the rows that ``first`` selects of ``length``."""
    if second is None:
        return first
    if isinstance(first, _slice):
        taken = range(*first.indices(length))
        if isinstance(second, _slice):
            return as_slice(taken[second])
        return [taken[i] for i in second]
    if isinstance(second, _slice):
        return first[second]
    return [first[i] for i in second]


def as_slice(rows: range) -> slice:
    """The slice that selects these rows, none of which is negative."""
    if not rows:
        return _slice(0, 0)
    stop = rows.stop if rows.stop >= 0 else None
    return _slice(rows.start, stop, rows.step)


def _rows(rows: Any, length: int) -> Any:
    if isinstance(rows, _slice):
        return as_slice(range(length)[rows])
    rows = list(rows)
    if rows and isinstance(rows[0], (bool, numpy.bool_)):
        if len(rows) != length:
            raise ValueError(
                f"slice: expected a boolean for each of {length} rows, got {len(rows)}"
            )
        return [i for i, chosen in enumerate(rows) if chosen]
    taken = range(length)
    return [taken[i] for i in rows]


def _positions(keys: tuple[str, ...], chosen: Any) -> tuple[int, ...]:
    if not isinstance(chosen, tuple):
        chosen = (chosen,)
    return tuple(_position(keys, key) for key in chosen)


def _position(keys: tuple[str, ...], key: Any) -> int:
    if isinstance(key, int) and -len(keys) <= key < len(keys):
        return range(len(keys))[key]
    if isinstance(key, int):
        raise IndexError(f"slice: expected a position among {keys}, got {key}")
    if key in keys:
        return keys.index(key)
    raise KeyError(f"slice: expected one of {keys} or a position, got {key!r}")
