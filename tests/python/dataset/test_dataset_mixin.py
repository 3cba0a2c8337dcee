"""DatasetMixin turns get_example into indexing."""

import numpy
import pytest

from renga.dataset import DatasetMixin


class Squares(DatasetMixin):
    def __len__(self):
        return 6

    def get_example(self, i):
        if not -6 <= i < 6:
            raise IndexError
        return i * i


@pytest.mark.parametrize(
    "index",
    [slice(None), slice(1, 4), slice(-2, None), slice(None, None, -2), slice(2, 99)],
)
def test_slices_are_those_of_a_list(index):
    assert Squares()[index] == [i * i for i in range(6)][index]


def test_lists_arrays_and_single_indices():
    assert Squares()[[0, 2]] == [0, 4]
    assert Squares()[numpy.array([5, -1])] == [25, 1]
    assert Squares()[3] == 9
    assert Squares()[numpy.int32(2)] == 4
    assert list(Squares()) == [0, 1, 4, 9, 16, 25]


def test_what_a_subclass_must_define():
    with pytest.raises(NotImplementedError):
        len(DatasetMixin())
    with pytest.raises(NotImplementedError):
        DatasetMixin()[0]
