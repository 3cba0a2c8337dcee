"""TupleDataset, DictDataset, ConcatenatedDataset and TransformDataset."""

import numpy
import pytest

from renga.datasets import (
    ConcatenatedDataset,
    DictDataset,
    TransformDataset,
    TupleDataset,
)

LETTERS = list("abcd")
NUMBERS = numpy.arange(4)


def test_tuple_dataset_is_zip():
    dataset = TupleDataset(NUMBERS, LETTERS)
    want = list(zip(NUMBERS, LETTERS))
    assert len(dataset) == 4 and list(dataset) == want
    assert dataset[1] == (1, "b") and dataset[-1] == (3, "d")
    assert dataset[numpy.int32(1)] == (1, "b")
    for index in (slice(None), slice(1, 3), slice(None, None, -1), slice(2, 2)):
        assert dataset[index] == want[index]
    columns = TupleDataset(NUMBERS, NUMBERS * 2)[[0, 2]]
    assert [c.tolist() for c in columns] == [[0, 2], [0, 4]]
    with pytest.raises(IndexError):
        dataset[4]


def test_dict_dataset_is_zip_with_names():
    dataset = DictDataset(x=NUMBERS, y=LETTERS)
    want = [{"x": x, "y": y} for x, y in zip(NUMBERS, LETTERS)]
    assert len(dataset) == 4 and list(dataset) == want
    assert dataset[-1] == {"x": 3, "y": "d"}
    for index in (slice(None), slice(1, 3), slice(None, None, -1), slice(2, 2)):
        assert dataset[index] == want[index]
    with pytest.raises(IndexError):
        dataset[4]


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="expected 4 examples .* got 3 in dataset 1"):
        TupleDataset(NUMBERS, "abc")
    with pytest.raises(ValueError, match="expected 4 .* 'x', got 3 in 'y'"):
        DictDataset(x=NUMBERS, y="abc")
    for empty in (TupleDataset, DictDataset):
        with pytest.raises(ValueError, match="expected data sets"):
            empty()


def test_concatenated_dataset_is_list_addition():
    dataset = ConcatenatedDataset(NUMBERS, [], LETTERS)
    want = list(NUMBERS) + LETTERS
    assert len(dataset) == 8
    assert [dataset[i] for i in range(-8, 8)] == want + want
    assert dataset[2:6] == want[2:6] and dataset[[0, 7]] == [0, "d"]
    for index in (8, -9):
        with pytest.raises(IndexError, match=f"below 8, got {index}"):
            dataset[index]
    with pytest.raises(IndexError):
        ConcatenatedDataset()[0]


def test_transform_dataset_is_map_when_read():
    seen = []
    dataset = TransformDataset(NUMBERS, lambda x: (seen.append(x), x * 10)[1])
    assert len(dataset) == 4 and seen == []
    assert dataset[1:3] == [10, 20]
    assert seen == [1, 2]
    with pytest.raises(IndexError):
        dataset[4]
