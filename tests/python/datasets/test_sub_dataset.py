"""Subsets of data sets: sizes, orders, seeds, folds."""

import numpy
import pytest
from hypothesis import given, strategies as st

from renga.datasets import (
    SubDataset,
    get_cross_validation_datasets,
    get_cross_validation_datasets_random,
    split_dataset,
    split_dataset_n,
    split_dataset_n_random,
    split_dataset_random,
)

DATA = list("abcdefg")


def lists(parts):
    return [list(part) for part in parts]


def test_sub_dataset_is_a_slice():
    part = SubDataset(DATA, 1, 4)
    assert part[:] == ["b", "c", "d"] and len(part) == 3
    assert part[-1] == "d" and part[[0, -3]] == ["b", "b"]
    for index in (3, -4):
        with pytest.raises(IndexError, match=f"below 3, got {index}"):
            part[index]
    assert SubDataset(DATA, 3, 3)[:] == []
    assert SubDataset(DATA, 1, 4, [6, 5, 4, 3, 2, 1, 0])[:] == ["f", "e", "d"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((-1, 4), "-1 to 4"),
        ((1, 8), "1 to 8"),
        ((1, 4, [0, 1]), "7 indices, got 2"),
    ],
)
def test_sub_dataset_faults(arguments, message):
    with pytest.raises(ValueError, match=message):
        SubDataset(DATA, *arguments)


@given(st.integers(0, 7), st.permutations(range(7)))
def test_split_dataset(split_at, order):
    first, rest = lists(split_dataset(DATA, split_at, order))
    assert first == [DATA[i] for i in order[:split_at]]
    assert rest == [DATA[i] for i in order[split_at:]]


def test_split_dataset_faults():
    for split_at in (-1, 8):
        with pytest.raises(ValueError, match=f"expected 0 to 7, got {split_at}"):
            split_dataset(DATA, split_at)
    for split_at in (1.5, [1, 2]):
        with pytest.raises(TypeError, match="expected an integer"):
            split_dataset(DATA, split_at)
    assert lists(split_dataset(DATA, numpy.int64(7))) == [DATA, []]


def test_split_dataset_n_leaves_out_the_rest():
    assert lists(split_dataset_n(DATA, 3)) == [["a", "b"], ["c", "d"], ["e", "f"]]
    backwards = split_dataset_n(DATA, 3, range(6, -1, -1))
    assert lists(backwards) == [["g", "f"], ["e", "d"], ["c", "b"]]
    assert lists(split_dataset_n(DATA[:2], 3)) == [[], [], []]


def test_random_splits_follow_numpys_permutation():
    order = numpy.random.RandomState(5).permutation(7)
    shuffled = [DATA[i] for i in order]
    first, rest = lists(split_dataset_random(DATA, 3, seed=5))
    assert first + rest == shuffled and len(first) == 3
    parts = lists(split_dataset_n_random(DATA, 2, seed=5))
    assert parts == [shuffled[:3], shuffled[3:6]]


@given(st.integers(1, 9), st.integers(1, 9))
def test_folds_are_a_partition(size, n_folds):
    data = list(range(size))
    folds = get_cross_validation_datasets(data, n_folds)
    assert len(folds) == n_folds
    tests = [list(test) for _, test in folds]
    assert sorted(sum(tests, [])) == data
    assert {len(test) for test in tests} <= {size // n_folds, -(-size // n_folds)}
    for train, test in folds:
        assert sorted(list(train) + list(test)) == data


def test_folds_are_those_of_chainer():
    # Chainer 7.8.1 printed these folds.
    assert [tuple(lists(f)) for f in get_cross_validation_datasets(range(7), 3)] == [
        ([0, 1, 2, 3], [4, 5, 6]),
        ([4, 5, 6, 0, 1], [2, 3]),
        ([2, 3, 4, 5, 6], [0, 1]),
    ]
    folds = get_cross_validation_datasets_random(range(7), 3, seed=0)
    assert [tuple(lists(fold)) for fold in folds] == [
        ([6, 2, 1, 3], [0, 5, 4]),
        ([0, 5, 4, 6, 2], [1, 3]),
        ([1, 3, 0, 5, 4], [6, 2]),
    ]


def test_the_old_name_of_n_folds():
    folds = get_cross_validation_datasets(DATA, n_fold=7)
    assert [list(test) for _, test in folds] == [[c] for c in reversed(DATA)]
    with pytest.raises(TypeError, match="expected n_folds"):
        get_cross_validation_datasets(DATA)
    with pytest.raises(TypeError, match="folds"):
        get_cross_validation_datasets(DATA, folds=3)
