"""Indexing of data sets that implement ``get_example``."""

from __future__ import annotations

from typing import Any

import numpy


class DatasetMixin:
    """A data set defined by ``__len__`` and ``get_example``."""

    def __getitem__(self, index: Any) -> Any:
        """An example, or a list of examples for a slice, a list or an array."""
        if isinstance(index, slice):
            return [self.get_example(i) for i in range(*index.indices(len(self)))]
        if isinstance(index, (list, numpy.ndarray)):
            return [self.get_example(i) for i in index]
        return self.get_example(index)

    def __len__(self) -> int:
        """The number of examples."""
        raise NotImplementedError

    def get_example(self, i: int) -> object:
        """The example of index ``i``; IndexError past the end."""
        raise NotImplementedError
