"""Sequences of different lengths, and additions at indices."""

import numpy
import pytest

import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
a, b, c = (rng.normal(size=(n, 2)) for n in (3, 2, 2))
empty = numpy.zeros((0, 2))


def by_time(*xs):
    return tuple(
        numpy.stack([x[t] for x in xs if len(x) > t]) for t in range(len(xs[0]))
    )


def test_transpose_sequence():
    check(lambda *xs: F.transpose_sequence(xs), by_time, a, b, c)
    check(lambda *xs: F.transpose_sequence(xs), by_time, a[:, 0].copy())
    assert F.transpose_sequence([]) == F.transpose_sequence([empty]) == ()
    first, second = F.transpose_sequence([b, empty])
    numpy.testing.assert_array_equal(second.array, b[1:])


@pytest.mark.parametrize(("length", "padding"), [(None, 0), (5, -1), (3, 2.5)])
def test_pad_sequence(length, padding):
    def padded(*xs):
        y = numpy.full((len(xs), length or 3, 2), padding, "d")
        for row, x in zip(y, xs):
            row[: len(x)] = x
        return y

    check(lambda *xs: F.pad_sequence(xs, length, padding), padded, b, a, c)
    check(lambda x: F.pad_sequence([x], length, padding), padded, a)


@pytest.mark.parametrize(
    "slices", [1, (0, 1), slice(0, 2), numpy.array([0, 0, 2]), ([2, 0], [1, 1]), ...]
)
def test_scatter_add(slices):
    def added(x, y):
        x = x.copy()
        numpy.add.at(x, slices, y)
        return x

    y = rng.normal(size=a[slices].shape)
    check(lambda x, y: F.scatter_add(x, slices, y), added, a, y)


FAULTS = [
    (lambda: F.transpose_sequence([b, a]), InvalidType),
    (lambda: F.transpose_sequence([a, b[:, :1]]), InvalidType),
    (lambda: F.pad_sequence([]), InvalidType),
    (lambda: F.pad_sequence([b, a], 2), InvalidType),
    (lambda: F.pad_sequence([b, a[:, :1]]), InvalidType),
    (lambda: F.scatter_add(a, slice(0, 2), b[0]), ValueError),
    (lambda: F.scatter_add(a, 3, b[0]), IndexError),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()
