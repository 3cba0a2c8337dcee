"""What softmax cross entropy keeps, and which labels it ignores."""

import numpy
import pytest

import renga
import renga.functions as F
from renga import memory


def test_no_second_array_of_scores_is_kept():
    x = renga.Variable(numpy.zeros((100, 5000), "f"))
    before = memory.stats()["in_use"]
    loss = F.softmax_cross_entropy(x, numpy.arange(100))
    assert memory.stats()["in_use"] - before < x.array.nbytes / 10
    loss.backward()
    expected = numpy.full(x.shape, 1 / 5000) - numpy.eye(100, 5000)
    numpy.testing.assert_allclose(x.grad, expected / 100, 1e-5, 1e-9)


def test_no_unsigned_label_is_ignored():
    # As int64, 2^64 - 1 is -1, the label that is ignored.
    scores, labels = numpy.zeros((2, 3), "f"), numpy.array([0, 2**64 - 1], "u8")
    with pytest.raises(IndexError, match="from 0 to 2, got 18446744073709551615"):
        F.softmax_cross_entropy(scores, labels)
