"""Tables joined by rows or by columns."""

from __future__ import annotations

import bisect
from typing import Any

import numpy

from renga.dataset.tabular.source import Columns, Keys, Mode, Rows, Source, Table


class Concatenated(Source):
    """The rows of several data sets, one data set after the other.

    Raises:
        ValueError: the keys of the data sets differ.
    """

    def __init__(self, *datasets: Table) -> None:
        super().__init__(datasets[0])
        self._datasets = datasets
        for dataset in datasets:
            if dataset.keys != datasets[0].keys:
                raise ValueError(
                    f"concat: expected the keys {datasets[0].keys}, got {dataset.keys}"
                )
        self._ends = numpy.cumsum([len(dataset) for dataset in datasets]).tolist()

    def __len__(self) -> int:
        return self._ends[-1]

    def get_examples(self, indices: Rows, key_indices: Keys) -> Columns:
        if indices is None:
            tables = [d.get_examples(None, key_indices) for d in self._datasets]
        elif isinstance(indices, slice):
            tables = self._slices(*indices.indices(len(self)), key_indices)
        else:
            rows = range(len(self))
            return self._gather([rows[i] for i in indices], key_indices)
        if indices is not None and len(tables) == 1:
            return tables[0]
        if not tables:
            return self._nothing(key_indices)
        return tuple(
            [value for column in columns for value in column]
            for columns in zip(*tables)
        )

    def _nothing(self, key_indices: Any) -> tuple[Any, ...]:
        width = len(self.keys if key_indices is None else key_indices)
        return tuple([] for _ in range(width))

    def _slices(
        self, start: int, stop: int, step: int, key_indices: Any
    ) -> list[tuple[Any, ...]]:
        """The tables of those data sets that have some of the rows, in their order.

        A data set gets the stop of the whole, unless that is outside of it.
        """
        tables = []
        rows = range(start, stop, step)
        for dataset, first in zip(self._datasets, [0, *self._ends]):
            # The rows are a range, so those of one data set are, too.
            own = rows[_reach(rows, first) : _reach(rows, first + len(dataset))]
            if step < 0:
                own = rows[
                    _reach(rows, first + len(dataset) - 1) : _reach(rows, first - 1)
                ]
            if own:
                end: int | None = min(stop - first, len(dataset))
                if step < 0:
                    end = stop - first if stop >= first else None
                local = slice(own[0] - first, end, step)
                tables.append(dataset.get_examples(local, key_indices))
        return tables if step > 0 else tables[::-1]

    def _gather(self, indices: list[int], key_indices: Any) -> tuple[Any, ...]:
        """Reads each data set's rows at once, then restores the order."""
        owners = [bisect.bisect(self._ends, i) for i in indices]
        positions: dict[int, list[int]] = {}
        for position, owner in enumerate(owners):
            positions.setdefault(owner, []).append(position)
        tables = {}
        for owner, wanted in positions.items():
            start = self._ends[owner] - len(self._datasets[owner])
            local = [indices[position] - start for position in wanted]
            tables[owner] = self._datasets[owner].get_examples(local, key_indices)
        if len(tables) == 1:
            return next(iter(tables.values()))
        columns: list[list[Any]] = [
            [None] * len(indices) for _ in self._nothing(key_indices)
        ]
        for owner, table in tables.items():
            for column, values in zip(columns, table):
                for position, value in zip(positions[owner], values):
                    column[position] = value
        return tuple(columns)


def _reach(rows: range, row: int) -> int:
    """How many of the rows come before ``row``, in their own direction."""
    return len(range(rows.start, row, rows.step))


class Joined(Source):
    """The columns of several data sets, side by side.

    Raises:
        ValueError: lengths differ, or a key occurs twice.
    """

    def __init__(self, *datasets: Table) -> None:
        super().__init__(datasets[0])
        self._datasets = datasets
        lengths = [len(dataset) for dataset in datasets]
        if len(set(lengths)) > 1:
            raise ValueError(f"join: expected data sets of one length, got {lengths}")
        if len(set(self.keys)) < len(self.keys):
            raise ValueError(f"join: expected no key twice, got {self.keys}")

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(key for dataset in self._datasets for key in dataset.keys)

    @property
    def mode(self) -> Mode:
        return next((d.mode for d in self._datasets if d.mode), tuple)

    def get_examples(self, indices: Rows, key_indices: Keys) -> Columns:
        if key_indices is None:
            tables = [d.get_examples(indices, None) for d in self._datasets]
            return tuple(column for table in tables for column in table)
        found: dict[int, Any] = {}
        start = 0
        for dataset in self._datasets:
            end = start + len(dataset.keys)
            wanted = dict.fromkeys(k for k in key_indices if start <= k < end)
            if wanted:
                local = tuple(k - start for k in wanted)
                found.update(zip(wanted, dataset.get_examples(indices, local)))
            start = end
        return tuple(found[k] for k in key_indices)
