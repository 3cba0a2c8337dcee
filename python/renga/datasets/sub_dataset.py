"""Subsets of a data set, and functions that split one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

import numpy

from renga.core.types import Dataset
from renga.dataset import DatasetMixin
from renga.utils.argument import check_count, parse_kwargs

Order = Union[Sequence[int], numpy.ndarray]


class SubDataset(DatasetMixin):
    """The examples ``start`` to ``finish`` of a data set taken in ``order``.

    Raises:
        ValueError: the range exceeds the data set, or ``order`` has another length than
            the data set.
    """

    def __init__(
        self, dataset: Dataset, start: int, finish: int, order: Order | None = None
    ) -> None:
        if start < 0 or finish > len(dataset):
            raise ValueError(
                f"SubDataset: expected a range within {len(dataset)} examples, "
                f"got {start} to {finish}"
            )
        if order is not None and len(order) != len(dataset):
            raise ValueError(
                f"SubDataset: expected an order of {len(dataset)} indices, "
                f"got {len(order)}"
            )
        if order is not None and len(order):
            indices = numpy.asarray(order)
            low, high = indices.min(), indices.max()
            if low < -len(dataset) or high >= len(dataset):
                raise ValueError(
                    f"SubDataset: expected an order of indices below {len(dataset)}, "
                    f"got {low} to {high}"
                )
        self._dataset = dataset
        self._start = start
        self._finish = finish
        self._order = order

    def __len__(self) -> int:
        return max(self._finish - self._start, 0)

    def get_example(self, i: int) -> object:
        """The example of index ``i`` of this subset."""
        if not -len(self) <= i < len(self):
            raise IndexError(
                f"SubDataset: expected an index below {len(self)}, got {i}"
            )
        index = (self._start if i >= 0 else self._finish) + i
        return self._dataset[index if self._order is None else self._order[index]]


def split_dataset(
    dataset: Dataset, split_at: int, order: Order | None = None
) -> tuple[SubDataset, SubDataset]:
    """The first ``split_at`` examples in ``order``, and the rest.

    Raises:
        TypeError: ``split_at`` is not an integer.
        ValueError: ``split_at`` is outside the data set.
    """
    if not isinstance(split_at, (int, numpy.integer)):
        raise TypeError(f"split_dataset: expected an integer, got {type(split_at)}")
    size = len(dataset)
    if not 0 <= split_at <= size:
        raise ValueError(f"split_dataset: expected 0 to {size}, got {split_at}")
    return (
        SubDataset(dataset, 0, split_at, order),
        SubDataset(dataset, split_at, size, order),
    )


def split_dataset_random(
    dataset: Dataset, first_size: int, seed: int | None = None
) -> tuple[SubDataset, SubDataset]:
    """``first_size`` random examples, and the rest; the same for the same seed."""
    return split_dataset(dataset, first_size, _permutation(dataset, seed))


def split_dataset_n(
    dataset: Dataset, n: int, order: Order | None = None
) -> list[SubDataset]:
    """``n`` subsets of equal size; remaining examples are left out."""
    check_count("split_dataset_n: n", n)
    size = len(dataset) // n
    return [SubDataset(dataset, size * i, size * (i + 1), order) for i in range(n)]


def split_dataset_n_random(
    dataset: Dataset, n: int, seed: int | None = None
) -> list[SubDataset]:
    """``n`` random subsets of equal size; the same for the same seed."""
    return split_dataset_n(dataset, n, _permutation(dataset, seed))


def get_cross_validation_datasets(
    dataset: Dataset,
    n_folds: int | None = None,
    order: Order | None = None,
    **kwargs: object,
) -> list[tuple[SubDataset, SubDataset]]:
    """A training and a test set for each fold; the test sets partition the data set.

    ``n_fold`` is the same as ``n_folds``.
    """
    (n_fold,) = parse_kwargs(kwargs, ("n_fold", None))
    n_folds = n_folds if n_fold is None else n_fold
    if n_folds is None:
        raise TypeError("get_cross_validation_datasets: expected n_folds")
    check_count("get_cross_validation_datasets: n_folds", n_folds)
    size = len(dataset)
    indices = numpy.arange(size) if order is None else numpy.asarray(order)
    folds = []
    for i in range(n_folds):
        start = size * (n_folds - i - 1) // n_folds
        finish = size * (n_folds - i) // n_folds
        rotated = numpy.roll(indices, size - finish)
        split_at = size - (finish - start)
        folds.append(split_dataset(dataset, split_at, rotated))
    return folds


def get_cross_validation_datasets_random(
    dataset: Dataset, n_folds: int, seed: int | None = None, **kwargs: object
) -> list[tuple[SubDataset, SubDataset]]:
    """``get_cross_validation_datasets`` in random order; the same for the same seed."""
    order = _permutation(dataset, seed)
    return get_cross_validation_datasets(dataset, n_folds, order, **kwargs)


def _permutation(dataset: Dataset, seed: int | None) -> numpy.ndarray:
    return numpy.random.RandomState(seed).permutation(len(dataset))
