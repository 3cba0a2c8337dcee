"""Extents as arguments: those that NumPy accepts are accepted, others refused."""

import itertools
import math
import random

import numpy
import pytest

import renga.functions as F
from renga.core.around_call import surrounding
from renga.utils.type_check import InvalidType

EXTENTS = [-(2**64), -6, -3, -2, -1, 0, 1, 2, 3, 4, 6]
EXTENTS += [2**40, 2**61, 2**62, 2**63 - 1, 2**63, 2**64, 2**64 + 6]
# Products of these overflow. One of them alone may fit in memory.
HALVES = [2**31, 2**32]
REFUSED = (InvalidType, ValueError, TypeError, OverflowError, MemoryError)
SMALL = 10**6


def shapes(n, extents=(*EXTENTS, *HALVES)):
    """All of up to two extents, and some of three and four."""
    yield from itertools.product(extents)
    yield from itertools.product(extents, repeat=2)
    draw = random.Random(0)
    for _ in range(n):
        yield tuple(draw.choice(extents) for _ in range(draw.choice((3, 4))))


def outcome(function, *args):
    """The result, or None if it was refused."""
    try:
        return function(*args)
    except REFUSED:
        return None


def check(function, expected, *args):
    """Where NumPy computes something, so does the function; else it raises."""
    y = outcome(function, *args)
    if expected is None:
        assert y is None, args[1:]
    else:
        assert y is not None, args[1:]
        assert y.shape == expected.shape
        if expected.size < SMALL:
            numpy.testing.assert_array_equal(y.array, expected)


def reshaped(x, shape):
    """As NumPy, but numbers below -1 are refused as in Chainer."""
    return None if min(shape) < -1 else outcome(numpy.reshape, x, shape)


@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (), (6,), (1, 2, 1, 3)])
def test_reshape(shape):
    x = numpy.arange(math.prod(shape), dtype="f").reshape(shape)
    for new in shapes(1500):
        check(F.reshape, reshaped(x, new), x, new)


def test_reshape_of_a_transposed_array():
    x = numpy.arange(24, dtype="f").reshape(2, 3, 4).transpose(2, 0, 1)
    for new in [*shapes(300), (12, 2), (-1, 6), (2, 3, 4), (4, 1, 6), (2, -1, 2)]:
        check(F.reshape, reshaped(x, new), x, new)


@pytest.mark.parametrize("shape", [(1,), (), (3,), (2, 1), (0, 1)])
def test_broadcast_to(shape):
    x = numpy.arange(math.prod(shape), dtype="f").reshape(shape)
    for new in shapes(1000):
        if math.prod(max(n, 1) for n in new) * 4 >= 2**63:
            expected = None  # NumPy accepts some without elements
        else:
            expected = outcome(numpy.broadcast_to, x, new)
        check(F.broadcast_to, expected, x, new)


@pytest.mark.parametrize("shape", [(2,), (1, 2), (2, 3)])
def test_tile(shape):
    x = numpy.arange(math.prod(shape), dtype="f").reshape(shape)
    for reps in [*shapes(500, EXTENTS), (2**32, 2**32), (2**31, 2**31, 2)]:
        if 0 in reps and max(reps) > SMALL:
            continue  # an empty array, which NumPy makes of an array that is too large
        small = min(reps) >= 0 and math.prod(reps) < SMALL
        check(F.tile, numpy.tile(x, reps) if small else None, x, reps)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_repeat(axis):
    x = numpy.arange(6, dtype="f").reshape(2, 3)
    for times in shapes(500, EXTENTS):
        count = x.size if axis is None else x.shape[axis]
        small = min(times) >= 0 and max(times) < SMALL and len(times) in (1, count)
        expected = numpy.repeat(x, times, axis) if small else None
        check(F.repeat, expected, x, times, axis)


@pytest.mark.parametrize("mode", ["constant", "edge", "wrap", "reflect", "symmetric"])
def test_pad(mode):
    x = numpy.arange(6, dtype="f").reshape(2, 3)
    for width in [*shapes(0, EXTENTS), ((2**31, 2**31), (2**31, 2**31))]:
        small = numpy.min(width) >= 0 and numpy.max(width) < 10
        expected = numpy.pad(x, width, mode) if small else None
        check(F.pad, expected, x, width, mode)


@pytest.mark.parametrize(
    "shape",
    [5, numpy.int8(5), numpy.array(5), [5], numpy.array([5]), (numpy.int64(5),)],
)
def test_integers_of_all_kinds(shape):
    assert F.broadcast_to(numpy.ones(1, "f"), shape).shape == (5,)
    assert F.reshape(numpy.ones((5, 1), "f"), shape).shape == (5,)


@pytest.mark.parametrize(
    "shape", [None, "5", "", b"5", 5.0, (5.0,), ((5,),), {5}, [None], numpy.ones(1)]
)
def test_no_integers(shape):
    with pytest.raises(TypeError):
        F.broadcast_to(numpy.ones(1, "f"), shape)
    with pytest.raises(TypeError):
        F.reshape(numpy.ones(5, "f"), shape)


def test_items_that_are_made_when_they_are_asked_for():
    class Extent:
        def __init__(self, extent):
            self.extent = extent

        def __index__(self):
            return self.extent

    class Extents:
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return Extent((2, 3)[i])

    assert F.reshape(numpy.ones(6, "f"), Extents()).shape == (2, 3)


@pytest.mark.parametrize("handler", [None, lambda call: call.run()])
def test_memory_errors_name_the_function_the_shape_and_the_bytes(handler):
    with surrounding(handler):
        with pytest.raises(
            MemoryError, match=r"tile.*\(2199023255552,\).*8796093022208"
        ):
            F.tile(numpy.ones(2, "f"), 2**40)
        with pytest.raises(MemoryError, match=r"exp.*\(1099511627776,\).*float32"):
            F.exp(F.broadcast_to(numpy.ones(1, "f"), 2**40))
        with pytest.raises(
            MemoryError, match=r"matmul.*\(1099511627776, 1099511627776\)"
        ):
            column = F.broadcast_to(numpy.ones(1, "f"), (2**40, 1))
            F.matmul(column, column, transb=True)


def test_the_core_works_after_a_memory_error():
    x = numpy.ones(2, "f")
    for _ in range(100):
        with pytest.raises(MemoryError):
            F.repeat(x, 2**40)
    assert F.repeat(x, 2).shape == (4,)
