"""accuracy against counting."""

import importlib

import numpy
import pytest

import renga
import renga.functions as F
from renga.utils.type_check import InvalidType

rng = numpy.random.default_rng(0)
ON_DEVICES = importlib.import_module("renga.functions.evaluation.accuracy")._on_device


@pytest.mark.parametrize("dtype", ["e", "f", "d"])
@pytest.mark.parametrize("extra", [(), (2,), (2, 3)])
@pytest.mark.parametrize("ignore", [None, 0, -1])
def test_counts(dtype, extra, ignore):
    y = rng.normal(size=(20, 4, *extra)).astype(dtype)
    t = rng.integers(-1, 4, size=(20, *extra))
    right = counted = 0
    for i in numpy.ndindex(*t.shape):
        if t[i] == ignore:
            continue
        scores = y[(i[0], slice(None), *i[1:])].tolist()
        counted += 1
        right += scores.index(max(scores)) == t[i]
    for accuracy in (F.accuracy, ON_DEVICES):
        found = accuracy(renga.Variable(y), renga.Variable(t), ignore)
        assert (found.shape, found.dtype) == ((), dtype)
        assert float(found.array) == pytest.approx(right / counted, rel=1e-3)


@pytest.mark.parametrize("accuracy", [F.accuracy, ON_DEVICES])
def test_a_single_sample(accuracy):
    y = renga.Variable(numpy.array([[0, 2, 1]], "f"))
    found = [float(accuracy(y, numpy.array([label]), None).array) for label in range(3)]
    assert found == [0, 1, 0]


def test_no_samples_to_count():
    y, t = numpy.ones((2, 3), "f"), numpy.array([1, 1])
    assert F.accuracy(y, t, ignore_label=1).array == 0
    assert F.accuracy(renga.Variable(y), t).creator is None


@pytest.mark.parametrize(
    ("y", "t"),
    [
        (numpy.ones((2, 3)), numpy.zeros(2)),
        (numpy.ones((2, 3), "i"), numpy.zeros(2, "i")),
        (numpy.ones((2, 3)), numpy.zeros(3, "i")),
        (numpy.ones((2, 3)), numpy.zeros((2, 1), "i")),
        (numpy.ones(2), numpy.zeros(2, "i")),
    ],
)
def test_arrays_of_other_shapes(y, t):
    with pytest.raises(InvalidType):
        F.accuracy(y, t)
