"""The part of a data set that one rank needs."""

from __future__ import annotations

from typing import Any

import numpy

from renga.datasets import DictDataset, SubDataset, TransformDataset, TupleDataset


def narrow(dataset: Any, indices: numpy.ndarray) -> Any:
    """A data set of the examples at ``indices``; None for one of unknown class.

    Wrappers are kept, so that a random transform is still applied at each access.
    """
    kind = type(dataset)
    if kind is numpy.ndarray:
        return dataset[indices]
    if kind in (list, tuple):
        return [dataset[i] for i in indices]
    if kind is SubDataset:
        within = numpy.arange(dataset._start, dataset._finish)[indices]
        order = dataset._order
        indices = within if order is None else numpy.asarray(order)[within]
        return narrow(dataset._dataset, indices)
    if kind is TransformDataset:
        inner = narrow(dataset._dataset, indices)
        return None if inner is None else TransformDataset(inner, dataset._transform)
    if kind is TupleDataset:
        found = [narrow(column, indices) for column in dataset._datasets]
        return None if any(x is None for x in found) else TupleDataset(*found)
    if kind is DictDataset:
        columns = {k: narrow(c, indices) for k, c in dataset._datasets.items()}
        missing = any(column is None for column in columns.values())
        return None if missing else DictDataset(**columns)
    return None
