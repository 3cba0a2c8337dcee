"""Selections of rows and columns, and other forms of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga.dataset.tabular.source import Columns, Keys, Mode, Rows, Source, Table


class Selection(Source):
    """Selected rows and columns of a data set."""

    def __init__(self, dataset: Table, index: object) -> None:
        """``index`` is of rows, or a pair of it and of one of keys."""
        super().__init__(dataset)
        rows, keys = index if isinstance(index, tuple) else (index, None)
        if isinstance(rows, (int, numpy.integer)):
            raise TypeError(
                f"slice: expected rows as a slice or a list, got {rows}; a single row "
                "is dataset[i]"
            )
        self._rows = _rows(rows, len(dataset))
        self._key_indices = None if keys is None else _positions(dataset.keys, keys)
        self._has_rows = keys is None or isinstance(keys, tuple)
        self._has_columns = isinstance(keys, tuple)

    def __len__(self) -> int:
        if isinstance(self._rows, slice):
            return len(range(*self._rows.indices(len(self.dataset))))
        return len(self._rows)

    @property
    def keys(self) -> tuple[str, ...]:
        keys = self.dataset.keys
        chosen = self._key_indices
        return keys if chosen is None else tuple(keys[k] for k in chosen)

    @property
    def mode(self) -> Mode:
        if not self._has_rows:
            return None
        # Several columns are no bare value.
        return self.dataset.mode or (tuple if self._has_columns else None)

    def get_examples(self, indices: Rows, key_indices: Keys) -> Columns:
        chosen: Sequence[int] | None = self._key_indices
        if chosen is None:
            chosen = key_indices
        elif key_indices is not None:
            chosen = tuple(chosen[k] for k in key_indices)
        rows = compose(self._rows, indices, len(self.dataset))
        return self.dataset.get_examples(rows, chosen)


class WithMode(Source):
    """A data set whose rows have another form."""

    mode: Mode = None

    def __init__(self, dataset: Table, mode: Mode) -> None:
        super().__init__(dataset)
        self.mode = mode


def compose(
    first: slice | Sequence[int], second: Rows, length: int
) -> slice | Sequence[int]:
    """``second``'s selection from the rows that ``first`` selects of ``length``."""
    if second is None:
        return first
    if isinstance(first, slice):
        taken = range(*first.indices(length))
        if isinstance(second, slice):
            return as_slice(taken[second])
        return [taken[i] for i in second]
    if isinstance(second, slice):
        return first[second]
    return [first[i] for i in second]


def as_slice(rows: range) -> slice:
    """The slice that selects these rows, none of which is negative."""
    if not rows:
        return slice(0, 0)
    stop = rows.stop if rows.stop >= 0 else None
    return slice(rows.start, stop, rows.step)


def _rows(rows: Any, length: int) -> Any:
    if isinstance(rows, slice):
        return as_slice(range(length)[rows])
    rows = list(rows)
    if rows and all(isinstance(row, (bool, numpy.bool_)) for row in rows):
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
