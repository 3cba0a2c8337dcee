"""Indices, ranges and strides of views and selections."""

import numpy
import pytest

import renga
import renga.functions as F
from renga import _core
from renga.utils.type_check import InvalidType


def test_keys_changed_after_the_call():
    x = renga.Variable(numpy.arange(5, dtype="f"))
    for call in (
        lambda i: x[i],
        lambda i: F.scatter_add(x * 0, i, x[:2]),
        lambda i: F.permutate(x[:2], i),
    ):
        keys = numpy.array([1, 0])
        y = F.sum(call(keys) * numpy.arange(1, call(keys).size + 1, dtype="f"))
        keys[:] = 10**9
        x.cleargrad()
        y.backward()
        expected = x.grad.copy()
        x.cleargrad()
        y = call(numpy.array([1, 0]))
        F.sum(y * numpy.arange(1, y.size + 1, dtype="f")).backward()
        numpy.testing.assert_array_equal(expected, x.grad)


@pytest.mark.parametrize(
    "ranges",
    [
        [(0, 3, 1), (0, 4, 1)],
        [(2, 1, 1), (0, 4, 1)],
        [(-1, 1, 1), (0, 4, 1)],
        [(0, 2, 1), (3, 4, -1)],
        [(0, 2, 1), (3, 5, -1)],
        [(0, 2, 1), (0, 2, 4)],
        [(0, 2, 0), (0, 4, 1)],
        [(0, -1, 1), (0, 4, 1)],
        [(0, 2**62, 4), (0, 4, 1)],
        [(1, 2**63 - 1, 1), (0, 4, 1)],
        [(0, 3, 2**62), (0, 4, 1)],
        [(0, 5, 2**62), (0, 4, 1)],
        [(10**9, 1, 1), (0, 4, 1)],
        [(0, 2, 1)],
    ],
)
def test_slices_of_the_core(ranges):
    x = renga.Variable(numpy.arange(8, dtype="f").reshape(2, 4))
    indices = [
        [start + step * k for k in range(min(length, 9))]
        for start, length, step in ranges
    ]
    inside = len(ranges) == 2 and all(
        length >= 0 and (step or length < 2) and all(0 <= i < n for i in axis)
        for (_, length, step), axis, n in zip(ranges, indices, x.shape)
    )
    if not inside:
        with pytest.raises((IndexError, InvalidType)):
            _core.ops.slice(x, ranges)
        return
    y = _core.ops.slice(x, ranges)
    numpy.testing.assert_array_equal(y.array, x.array[numpy.ix_(*indices)])


def test_inverse_of_an_invalid_permutation():
    with pytest.raises(ValueError, match="once"):
        F.permutate(numpy.zeros((4, 5)), numpy.array([0, 1, 1, 2, 3]), 1, inv=True)


@pytest.mark.parametrize(
    "shape, strides, offset",
    [
        ((5,), (2**62,), 0),
        ((3, 3), (2**63 - 1, 1), 0),
        ((2,), (-1,), 0),
        ((2,), (1,), 9),
    ],
)
def test_strides_out_of_bounds(shape, strides, offset):
    with pytest.raises(ValueError, match="elements 0 to 8"):
        F.as_strided(numpy.zeros((3, 3), "f"), shape, strides, offset)


class TestSampler:
    x = numpy.arange(9, dtype="f").reshape(1, 1, 3, 3) + 1

    def sample(self, column, row):
        grid = numpy.array([column, row], "f").reshape(1, 2, 1, 1)
        return F.spatial_transformer_sampler(self.x, grid).array.item()

    @pytest.mark.parametrize("value", [numpy.inf, -numpy.inf, 1e30, -1e30, 5])
    def test_points_far_outside(self, value):
        assert self.sample(value, 0) == 0 and self.sample(0, value) == 0

    def test_nan(self):
        assert numpy.isnan(self.sample(numpy.nan, 0))


def test_scatter_add_adds_in_the_dtype_of_the_sum():
    largest = numpy.full(3, 2**64 - 1, "u8")
    y = F.scatter_add(numpy.zeros(1, "f"), numpy.zeros(3, "i"), largest)
    numpy.testing.assert_allclose(y.array, [3 * 2.0**64], rtol=1e-6)


@pytest.mark.parametrize("width", [1, 5, 16, 37])
def test_rows_of_float16_are_added(width):
    rng = numpy.random.default_rng(0)
    ids = rng.integers(0, 7, 50)
    gy = rng.integers(-3, 4, (50, width)).astype("e")  # whose sums are exact
    w = renga.Variable(numpy.zeros((7, width), "e"))
    y = F.embed_id(ids, w)
    y.grad = gy
    y.backward()
    exact = numpy.zeros((7, width))
    numpy.add.at(exact, ids, gy)
    numpy.testing.assert_array_equal(w.grad, exact)
