"""Tables of arrays, lists and functions."""

from __future__ import annotations

import functools
from typing import Any, Callable

import numpy

from renga.dataset.tabular.source import Mode
from renga.dataset.tabular.tabular_dataset import TabularDataset


def from_data(data: object, *, size: int | None = None) -> TabularDataset:
    """A data set of columns.

    A column is an array or a list, or ``(key, column)``, or, computed on demand,
    ``(key, function of an index)`` or ``(keys, function)`` with a tuple or, for rows
    that are dictionaries, a dictionary of values.
    ``data`` is a column, a tuple of them, or a dictionary of columns by key. ``size``
    is needed where there are functions only.

    >>> from renga.dataset import tabular
    >>> table = tabular.from_data({"x": [1, 2, 3], "y": lambda i: i * i})
    >>> table[2], table.slice[:2, "y"].fetch()
    ({'x': 3, 'y': 4}, [0, 1])

    Raises:
        ValueError: a function has no key, or lengths differ or are unknown.
    """
    if isinstance(data, dict):
        columns = [_column(key, values) for key, values in data.items()]
        return _join(columns, size).asdict()
    if isinstance(data, tuple) and not _is_named(data):
        return _join([_parse(column) for column in data], size).astuple()
    return _join([_parse(data)], size)


class _Array(TabularDataset):
    """One column in memory."""

    mode: Mode = None

    def __init__(self, key: str, values: Any) -> None:
        self._key = key
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    @property
    def keys(self) -> tuple[str, ...]:
        return (self._key,)

    def get_examples(self, indices: Any, key_indices: Any) -> tuple[Any, ...]:
        column = self._values
        if isinstance(indices, slice) or (
            indices is not None and isinstance(column, numpy.ndarray)
        ):
            column = column[indices]
        elif indices is not None:
            column = [column[i] for i in indices]
        count = 1 if key_indices is None else len(key_indices)
        return (column,) * count


class _Function(TabularDataset):
    """Columns computed by a function of the index of a row."""

    def __init__(self, keys: Any, function: Callable) -> None:
        self._keys = keys if isinstance(keys, tuple) else (keys,)
        self._function = function
        self._alone = not isinstance(keys, tuple)
        self.size = 0

    def __len__(self) -> int:
        return self.size

    @property
    def keys(self) -> tuple[str, ...]:
        return self._keys

    @property
    def mode(self) -> Mode:
        """None for a single key, else what the function returns for the first row."""
        return None if self._alone else self._probed_mode

    @functools.cached_property
    def _probed_mode(self) -> Mode:
        return dict if isinstance(self._function(0), dict) else tuple

    def get_examples(self, indices: Any, key_indices: Any) -> tuple[Any, ...]:
        rows: Any = range(self.size)
        if isinstance(indices, slice):
            rows = rows[indices]
        elif indices is not None:
            rows = [rows[i] for i in indices]
        made = [self._function(i) for i in rows]
        wanted = range(len(self._keys)) if key_indices is None else key_indices
        if self._alone:
            return tuple(list(made) for _ in wanted)
        if self.mode is dict:
            wanted = [self._keys[k] for k in wanted]
        return tuple([row[k] for row in made] for k in wanted)


def _is_named(data: tuple[Any, ...]) -> bool:
    """Whether this tuple is a key, or several, and a column."""
    if len(data) != 2:
        return False
    key = data[0]
    names = key if isinstance(key, tuple) else (key,)
    return bool(names) and all(isinstance(name, str) for name in names)


def _parse(data: Any) -> _Array | _Function:
    if isinstance(data, tuple) and _is_named(data):
        return _column(*data)
    if callable(data):
        raise ValueError("from_data: expected a key with a function, got none")
    return _column(f"_{id(data)}", data)


def _column(key: Any, values: Any) -> _Array | _Function:
    return _Function(key, values) if callable(values) else _Array(key, values)


def _join(columns: list[_Array | _Function], size: int | None) -> TabularDataset:
    lengths = [len(column) for column in columns if isinstance(column, _Array)]
    if size is None and not lengths:
        raise ValueError("from_data: expected a size, for there are functions only")
    if size is None:
        size = lengths[0]
    if set(lengths) - {size}:
        raise ValueError(f"from_data: expected columns of length {size}, got {lengths}")
    for column in columns:
        if isinstance(column, _Function):
            column.size = size
    first, *others = columns
    return first.join(*others) if others else first
