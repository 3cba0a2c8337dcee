"""get_item: every kind of index NumPy knows, and its gradients."""

import numpy
import pytest

import renga
import renga.functions as F
from renga import gradient_check

x = numpy.arange(24.0).reshape(2, 3, 4)
mask = x % 5 == 0

BASIC = [
    1,
    -2,
    slice(None),
    slice(None, None, -1),
    slice(3, 0, -2),
    slice(5, 9),
    None,
    Ellipsis,
    (),
    (1, 2, 3),
    (slice(None), 1),
    (Ellipsis, 0),
    (0, Ellipsis, slice(1, 3)),
    (None, 0, None, slice(None, None, 2), Ellipsis),
    (-1, slice(None), None),
    (None, slice(2), 0),
    (slice(None), None, 1),
]
ADVANCED = [
    numpy.int64(1),
    [1, 0, 1],
    numpy.array([[0, 1], [1, 1]]),
    mask,
    (0, mask[0]),
    (slice(None), [2, 0]),
    ([1, 0], slice(None), [3, 3]),
    ([0, 1], None, [1, 1]),
    (Ellipsis, numpy.array([True, False, True, False])),
    True,
    (slice(None), [-1, 2], [0, -4]),
    (slice(None), [1, 2], Ellipsis, [0, 3]),
    ([0, 1], Ellipsis, numpy.array([0, 3], numpy.uint8)),
    (slice(None, None, -1), slice(1, 3), [[3, 0], [0, 0]]),
    (slice(1, 2), [2, 0, 2], slice(0, 3)),
    ([1, 0], [2, 2], [3, 3]),
    (None, [[0], [1]], None, [1, 2], slice(None, None, 2)),
    (slice(None), [1, 1], None, slice(None)),
    (mask.any(2), slice(1, None)),
    (slice(None), mask[1]),
    (numpy.zeros(2, bool), 1),
    ([], slice(None), 1),
]


@pytest.mark.parametrize("slices", BASIC + ADVANCED, ids=str)
def test_forward(slices):
    expected = x[slices]
    for y in (F.get_item(x, slices), renga.Variable(x)[slices]):
        numpy.testing.assert_array_equal(y.array, expected, strict=True)


@pytest.mark.parametrize("slices", BASIC + ADVANCED, ids=str)
def test_gradients(slices):
    rng = numpy.random.default_rng(0)
    gy = rng.normal(size=x[slices].shape)
    ggx = rng.normal(size=x.shape)
    gradient_check.check_backward(lambda v: v[slices], x, gy)
    gradient_check.check_double_backward(lambda v: v[slices] ** 2, x, gy, ggx)


@pytest.mark.parametrize("dtype", ["e", "f", "b", "i", "B", "?"])
def test_dtypes_and_layouts(dtype):
    a = (numpy.random.default_rng(0).normal(size=(6, 5, 4)) * 9).astype(dtype)
    for v in (a, a.transpose(2, 0, 1), a[::-1, 1:, ::2]):
        for keys in ((slice(None), [3, -1, 3]), ([1, 0], slice(None), [1, 1]), [2, 2]):
            numpy.testing.assert_array_equal(
                F.get_item(v, keys).array, v[keys], strict=True
            )


def test_gradients_are_added_in_order():
    """Sums of one element have the bits of NumPy's, which adds one after the other."""
    rng = numpy.random.default_rng(0)
    index = rng.integers(-50, 50, 2000)
    for shape, keys in (
        ((50,), (index,)),
        ((50, 7), (index,)),
        ((3, 50), (slice(None), index)),
        ((4, 50, 3), (slice(1, 3), index)),
    ):
        v = renga.Variable(rng.normal(size=shape).astype("f"))
        y = v[keys]
        gy = y.grad = rng.normal(size=y.shape).astype("f")
        y.backward()
        expected = numpy.zeros(shape, "f")
        numpy.add.at(expected, keys, gy)
        numpy.testing.assert_array_equal(v.grad, expected)


def test_basic_indexing_is_a_view():
    y = F.get_item(x, (slice(None), 1, None))
    assert numpy.shares_memory(y.array, x)


@pytest.mark.parametrize(
    "slices",
    [
        2,
        -3,
        (0, 0, 0, 0),
        (Ellipsis, Ellipsis),
        1.5,
        "a",
        renga.Variable(numpy.array([1])),
        [2],
        (slice(None), numpy.array([True])),
    ],
    ids=str,
)
def test_wrong_indices(slices):
    with pytest.raises(IndexError):
        F.get_item(x, slices)
