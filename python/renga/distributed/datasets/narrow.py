"""The part of a data set that is worth sending."""

from __future__ import annotations

from typing import Any

import numpy

from renga.datasets import DictDataset, SubDataset, TransformDataset, TupleDataset


def narrow(dataset: Any, indices: numpy.ndarray) -> Any:
    """A data set of the examples at ``indices``, or None for one of unknown making.

    Wrappers stay, so that a random transform is still made at each reading.
    """
    kind = type(dataset)
    if kind is numpy.ndarray:
        return dataset[indices]
    if kind in (list, tuple):
        return [dataset[i] for i in indices]
    if kind is SubDataset:
        within = numpy.arange(dataset._start, dataset._finish)[indices]
        order = dataset._order
        inner = within if order is None else numpy.asarray(order)[within]
        return narrow(dataset._dataset, inner)
    if kind is TransformDataset:
        part = narrow(dataset._dataset, indices)
        return None if part is None else TransformDataset(part, dataset._transform)
    if kind is TupleDataset:
        parts = [narrow(column, indices) for column in dataset._datasets]
        return None if any(p is None for p in parts) else TupleDataset(*parts)
    if kind is DictDataset:
        columns = {k: narrow(c, indices) for k, c in dataset._datasets.items()}
        missing = any(column is None for column in columns.values())
        return None if missing else DictDataset(**columns)
    return None
