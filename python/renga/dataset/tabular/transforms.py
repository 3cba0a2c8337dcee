"""Tables computed by functions of another table's rows or columns."""

from __future__ import annotations

import functools
from typing import Any, Callable

from renga.dataset.tabular.source import Columns, Keys, Mode, Rows, Source, Table


class Transformed(Source):
    """Each row by a function of a row.

    Raises:
        ValueError: a row is of another kind (tuple, dictionary or value) than the
            first one of the data set, or has not as many values as there are keys.
    """

    _name = "transform"

    def __init__(
        self, dataset: Table, keys: str | tuple[str, ...], transform: Callable
    ) -> None:
        super().__init__(dataset)
        self._keys = keys if isinstance(keys, tuple) else (keys,)
        self._alone = not isinstance(keys, tuple)
        self._transform = transform

    @property
    def keys(self) -> tuple[str, ...]:
        return self._keys

    @property
    def mode(self) -> Mode:
        """None for a single key, else what the function returns for the first row."""
        return None if self._alone else self._probed_mode

    def get_examples(self, indices: Rows, key_indices: Keys) -> Columns:
        columns = self.dataset.get_examples(indices, None)
        wanted = range(len(self.keys)) if key_indices is None else key_indices
        return self._compute(columns, [self.keys[k] for k in wanted])

    @functools.cached_property
    def _probed_mode(self) -> Mode:
        return _mode_of(self._probe())

    def _probe(self) -> Any:
        columns = self.dataset.get_examples([0], None)
        return self._row(tuple(column[0] for column in columns))

    def _row(self, values: tuple[Any, ...]) -> Any:
        if self.dataset.mode is dict:
            return self._transform(**dict(zip(self.dataset.keys, values)))
        return self._transform(*values)

    def _compute(self, columns: tuple[Any, ...], chosen: Any) -> tuple[Any, ...]:
        rows = [self._by_key(self._row(values)) for values in zip(*columns)]
        return tuple([row[key] for row in rows] for key in chosen)

    def _by_key(self, result: Any) -> dict[str, Any]:
        if self._alone:
            return {self._keys[0]: result}
        mode = _mode_of(result)
        if mode is not self.mode:
            raise ValueError(
                f"{self._name} must not change its return type: expected {self.mode}, "
                f"got {mode}"
            )
        if mode is dict:
            return result
        values = (result,) if mode is None else result
        if len(values) != len(self._keys):
            raise ValueError(
                f"{self._name}: expected {len(self._keys)} values, for {self._keys}, "
                f"got {len(values)}"
            )
        return dict(zip(self._keys, values))


class TransformedByBatch(Transformed):
    """Columns by a function of columns, which are as long as those it gets."""

    _name = "transform_batch"

    def _probe(self) -> Any:
        return self._row(self.dataset.get_examples([0], None))

    def _compute(self, columns: tuple[Any, ...], chosen: Any) -> tuple[Any, ...]:
        result = self._by_key(self._row(columns))
        lengths = {len(columns[0]), *map(len, result.values())}
        if len(lengths) > 1:
            raise ValueError(
                "transform_batch must not change the length of data: expected "
                f"{len(columns[0])} rows, got {[len(c) for c in result.values()]}"
            )
        return tuple(result[key] for key in chosen)


def _mode_of(result: Any) -> Mode:
    """The form of what a function returns for a row."""
    return next((kind for kind in (tuple, dict) if isinstance(result, kind)), None)


class WithConverter(Source):
    """A data set with a user-defined ``convert``."""

    def __init__(self, dataset: Table, converter: Callable) -> None:
        super().__init__(dataset)
        self._converter = converter

    def convert(self, data: object) -> object:
        if isinstance(data, tuple):
            return self._converter(*data)
        if isinstance(data, dict):
            return self._converter(**data)
        return self._converter(data)
