"""TabularDataset: a data set as a table."""

from __future__ import annotations

from typing import Any, Callable

import numpy

from renga.dataset.convert import concat_examples
from renga.dataset.dataset_mixin import DatasetMixin
from renga.dataset.tabular.combinations import Concatenated, Joined
from renga.dataset.tabular.selection import Selection, WithMode
from renga.dataset.tabular.source import Columns, Keys, Mode, Rows, Source
from renga.dataset.tabular.transforms import (
    Transformed,
    TransformedByBatch,
    WithConverter,
)


class TabularDataset(DatasetMixin):
    """A table: examples are its rows, and each has a value for every key.

    A subclass implements ``__len__``, ``keys``, ``mode`` and ``get_examples``. Slicing,
    joining and transforming are derived from these and read only the requested rows and
    columns. ``mode`` is the form of rows and of sets of columns: ``tuple``, ``dict``,
    or ``None`` for the bare value of the only key.
    """

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the columns."""
        raise NotImplementedError

    @property
    def mode(self) -> Mode:
        """``tuple``, ``dict`` or ``None``."""
        raise NotImplementedError

    def get_examples(self, indices: Rows, key_indices: Keys) -> Columns:
        """The requested columns, as a tuple.

        ``indices`` is a list or a slice of rows, or None for all; ``key_indices`` a
        tuple of the positions of keys, or None for all.
        """
        raise NotImplementedError

    @property
    def slice(self) -> _Slicer:
        """``dataset.slice[rows]`` or ``dataset.slice[rows, keys]`` selects from it.

        Rows are a slice, a list of indices or of booleans; keys one name or position,
        or a tuple of them.
        """
        return _Slicer(self)

    def fetch(self) -> Any:
        """All columns, in a tuple or a dictionary, or the only one."""
        return self._arrange(self.get_examples(None, None))

    def convert(self, data: object) -> object:
        """The columns that ``fetch`` gave as arrays."""
        if isinstance(data, tuple):
            return tuple(map(_as_array, data))
        if isinstance(data, dict):
            return {key: _as_array(column) for key, column in data.items()}
        return _as_array(data)

    def astuple(self) -> TabularDataset:
        """A data set whose rows are tuples."""
        return self._with_mode(tuple)

    def asdict(self) -> TabularDataset:
        """A data set whose rows are dictionaries."""
        return self._with_mode(dict)

    def concat(self, *datasets: TabularDataset) -> TabularDataset:
        """These rows, then those of data sets with the same keys."""
        return DelegateDataset(Concatenated(self, *datasets))

    def join(self, *datasets: TabularDataset) -> TabularDataset:
        """These columns and those of data sets with equally many rows."""
        return DelegateDataset(Joined(self, *datasets))

    def transform(
        self, keys: str | tuple[str, ...], transform: Callable
    ) -> TabularDataset:
        """Rows made of each row by a function, with new keys.

        The function is called with a row's values by position or, in dict mode, by
        name, and returns the new row: a tuple, a dictionary, or one value if ``keys``
        is one name.
        """
        return DelegateDataset(Transformed(self, keys, transform))

    def transform_batch(
        self, keys: str | tuple[str, ...], transform_batch: Callable
    ) -> TabularDataset:
        """A data set that is transformed by a function of entire columns."""
        return DelegateDataset(TransformedByBatch(self, keys, transform_batch))

    def with_converter(self, converter: Callable) -> TabularDataset:
        """A data set whose ``convert`` calls ``converter`` with the columns."""
        return DelegateDataset(WithConverter(self, converter))

    def get_example(self, i: int) -> object:
        columns = self.get_examples([i], None)
        return self._arrange(tuple(column[0] for column in columns))

    def _with_mode(self, mode: Mode) -> TabularDataset:
        return DelegateDataset(WithMode(self, mode))

    def _arrange(self, values: tuple[Any, ...]) -> Any:
        if self.mode is dict:
            return dict(zip(self.keys, values))
        return values if self.mode is tuple else values[0]


class DelegateDataset(Source, TabularDataset):
    """Reads from ``dataset``; a subclass overrides some methods."""


class _Slicer:
    """The value of ``dataset.slice``: indexing it selects rows and columns."""

    def __init__(self, dataset: TabularDataset) -> None:
        self._dataset = dataset

    def __getitem__(self, index: Any) -> TabularDataset:
        return DelegateDataset(Selection(self._dataset, index))


def _as_array(column: Any) -> Any:
    if isinstance(column, numpy.ndarray):
        return column
    return concat_examples(column, None)
