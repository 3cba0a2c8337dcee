"""Sums of several, clipping and means."""

import numpy
import pytest

import renga
import renga.functions as F
from renga import gradient_check
from renga.utils.type_check import InvalidType

rng = numpy.random.default_rng(0)
x = rng.normal(size=(2, 3, 4))


def test_add():
    y, z = rng.normal(size=(3, 1)), rng.normal(size=4)
    numpy.testing.assert_allclose(F.add(x, y, z).array, x + y + z)
    numpy.testing.assert_allclose(F.add(x, y).array, x + y)
    numpy.testing.assert_allclose(F.add(x, 2).array, x + 2)
    v = renga.Variable(x)
    assert F.add(v) is not v
    numpy.testing.assert_array_equal(F.add(v).array, x)
    with pytest.raises(InvalidType):
        F.add()
    gradient_check.check_backward(F.add, (x, y, z), x)


@pytest.mark.parametrize("limits", [(-0.5, 0.5), (None, 0.5), (-0.5, None)])
def test_clip(limits):
    expected = numpy.clip(x, *limits)
    numpy.testing.assert_array_equal(F.clip(x, *limits).array, expected)
    x_min, x_max = limits
    y = F.clip(renga.Variable(x), x_min=x_min, x_max=x_max)
    numpy.testing.assert_array_equal(y.array, expected)


def test_clip_faults():
    with pytest.raises(ValueError):
        F.clip(x, 1, 0)
    with pytest.raises(InvalidType):
        F.clip(x.astype("i"), 0, 1)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (1,)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_mean(axis, keepdims):
    y = F.mean(x, axis, keepdims=keepdims)
    numpy.testing.assert_allclose(y.array, x.mean(axis, keepdims=keepdims))
    gy, ggx = rng.normal(size=y.shape), rng.normal(size=x.shape)

    def squared(v):
        return F.average(v, axis, keepdims=keepdims) ** 2

    gradient_check.check_backward(squared, x, gy)
    gradient_check.check_double_backward(squared, x, gy, ggx)


@pytest.mark.parametrize("axis", [None, 1, (2,), -1])
@pytest.mark.parametrize("full", [False, True])
def test_weighted_mean(axis, full):
    one_axis = axis[0] if isinstance(axis, tuple) else axis
    full = full or axis is None
    weights = rng.uniform(1, 2, x.shape if full else (x.shape[one_axis],))
    expected = numpy.average(x, one_axis, weights)
    y = F.average(x, axis, weights)
    numpy.testing.assert_allclose(y.array, expected)
    kept = F.average(x, axis, weights, keepdims=True)
    expected = numpy.average(x, one_axis, weights, keepdims=True)
    numpy.testing.assert_allclose(kept.array, expected)
    gradient_check.check_backward(
        lambda v, w: F.average(v, axis, w), (x, weights), rng.normal(size=y.shape)
    )


def test_the_mean_of_many_halves_does_not_overflow():
    y = F.mean(numpy.full((1000, 100), 60000, "e"))
    assert y.dtype == numpy.float16
    assert y.array == 60000


def test_mean_faults():
    for wrong in (
        lambda: F.mean(x, 3),
        lambda: F.mean(x.astype("i")),
        lambda: F.mean(x, 1, numpy.ones(2)),
    ):
        with pytest.raises(InvalidType):
            wrong()
    with pytest.raises(ValueError):
        F.mean(x, (0, 0))
    with pytest.raises(ValueError):
        F.mean(x, (0, 1), x)
    with pytest.raises(TypeError):
        F.mean(x, 1.5)
    assert numpy.isnan(F.mean(numpy.zeros((0, 2))).array)


def test_results_have_the_memory_order_of_dense_operands():
    image = numpy.moveaxis(rng.normal(size=(2, 3, 4, 5)), -1, 1)
    repeated = numpy.broadcast_to(numpy.float64(2), image.shape)
    for a, b in ((repeated, image), (image, repeated)):
        y = renga.Variable(a) * b
        assert y.array.strides == image.strides
        numpy.testing.assert_array_equal(y.array, 2 * image)


@pytest.mark.parametrize("dtype", "efi")
def test_large_operands_in_different_orders_of_memory(dtype):
    a, b = rng.integers(-9, 10, (2, 3, 70, 20, 50)).astype(dtype)
    image, repeated = numpy.moveaxis(b.reshape(3, 20, 50, 70), -1, 1), b[0]
    for first, second in ((a, image), (image, a), (image, repeated)):
        y = renga.Variable(first) - second
        numpy.testing.assert_array_equal(y.array, first - second)
        assert y.array.strides == first.strides


LAYOUTS = {
    "contiguous": lambda a: a,
    "transposed": lambda a: numpy.asfortranarray(a),
    "reversed": lambda a: a[::-1],
}
# Runs and rows shorter and longer than a vector, and than what is converted at a time.
SHAPES = [(1, 7), (100, 10), (17, 33, 9), (2, 5000), (3, 21, 65), (70, 300), (9, 4100)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", "efd")
def test_reductions(dtype, shape, layout):
    a = LAYOUTS[layout](rng.normal(size=shape).astype(dtype))
    exact = a.astype(numpy.longdouble)
    unit = 4 * numpy.finfo(dtype).eps
    for axis in (None, *range(a.ndim)):
        size = abs(exact).sum(axis)
        x = renga.Variable(a)
        y = F.sum(x, axis)
        assert (abs(y.array - exact.sum(axis)) <= unit * size).all()
        gy = y.grad = rng.normal(size=y.shape).astype(dtype)
        y.backward()
        gy = gy if axis is None else numpy.expand_dims(gy, axis)
        numpy.testing.assert_array_equal(x.grad, numpy.broadcast_to(gy, a.shape))
        numpy.testing.assert_array_equal(F.max(a, axis).array, exact.max(axis))
        numpy.testing.assert_array_equal(F.min(a, axis).array, exact.min(axis))


@pytest.mark.parametrize("n", [1, 15, 16, 33, 200])
@pytest.mark.parametrize("dtype", "fd")
def test_the_largest_number_is_nan_where_there_is_one(dtype, n):
    a = rng.normal(size=(n, n)).astype(dtype)
    a[numpy.arange(n), numpy.arange(n)] = numpy.nan  # at every place of a row
    a = numpy.vstack([a, numpy.full((1, n), -numpy.inf, dtype)])
    for find in (F.max, F.min):
        found = find(a, 1).array
        assert numpy.isnan(found[:-1]).all() and found[-1] == -numpy.inf


@pytest.mark.parametrize("shape", [(40, 333), (77, 18), (33, 1), (3, 20, 70)], ids=str)
@pytest.mark.parametrize("dtype", "fd")
def test_running_sums_and_products_of_many_lines(dtype, shape):
    a = rng.uniform(0.9, 1.1, shape).astype(dtype)
    tolerance = 1000 * numpy.finfo(dtype).eps
    for view in (a, a[..., ::-1], numpy.asfortranarray(a)):
        exact = view.astype("longdouble")
        for f, expected in ((F.cumsum, numpy.cumsum), (F.cumprod, numpy.cumprod)):
            y = f(view, axis=-1).array
            numpy.testing.assert_allclose(y, expected(exact, -1), tolerance)
        v = renga.Variable(view)
        F.sum(F.prod(v, axis=-1)).backward()
        others = exact.prod(-1, keepdims=True) / exact
        numpy.testing.assert_allclose(v.grad, others, tolerance)
        w = renga.Variable(view)
        F.sum(F.cumprod(w, axis=-1)).backward()
        later = exact.cumprod(-1)[..., ::-1].cumsum(-1)[..., ::-1]
        numpy.testing.assert_allclose(w.grad, later / exact, tolerance)


def test_running_sums_of_16_bits():
    a = rng.integers(-1, 2, (40, 333)).astype("f")  # whose sums are exact
    for view in (a, a[:, ::-1]):
        y = F.cumsum(view.astype("e"), axis=1).array
        numpy.testing.assert_array_equal(y, view.cumsum(1))
    with renga.using_config("dtype", renga.mixed_bfloat16):
        y = F.cumsum(renga._core.as_activation(renga.Variable(a)), axis=1)
        assert renga._core.dtype_name(y) == "bfloat16"
        numpy.testing.assert_array_equal(F.cast(y, "f").array, a.cumsum(1))


@pytest.mark.parametrize("n", [40, 127, 128, 200, 385, 1000])
def test_sums_of_float32_are_within_their_bound(n):
    a = rng.normal(size=(25, n)).astype("f")
    wide = a.astype("d")
    for axis in (None, 0, 1):
        bound = 9 * 2.0**-24 * abs(wide).sum(axis)
        assert (abs(F.sum(a, axis).array - wide.sum(axis)) <= bound).all()


@pytest.mark.parametrize("n", [1, 10, 256, 1200, 5000])
def test_sums_of_bfloat16(n):
    a = rng.integers(-64, 65, (24, n)).astype("f")  # exact in bfloat16
    with renga.using_config("dtype", renga.mixed_bfloat16):
        b = renga._core.as_activation(renga.Variable(a))
        for axis in (None, 0, 1):
            numpy.testing.assert_array_equal(F.sum(b, axis).array, a.sum(axis))


@pytest.mark.parametrize("n", [3, 20, 40, 130, 1000])
@pytest.mark.parametrize("dtype", ["e", "f", "d", "i"])
def test_numbers_repeated_along_runs(dtype, n):
    a = rng.integers(-9, 10, (5, 4, n)).astype(dtype)
    for shape in ((), (4, 1), (5, 1, 1), (5, 4, 1), (n,), (5, 1, n), (1, 4, 1)):
        b = rng.integers(-9, 10, shape).astype(dtype)
        numpy.testing.assert_array_equal((renga.Variable(a) - b).array, a - b)
        numpy.testing.assert_array_equal((renga.Variable(b) * a).array, b * a)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", "efd")
def test_softmax(dtype, shape, layout):
    a = LAYOUTS[layout](rng.normal(size=shape).astype(dtype) * 3)
    unit = 2 * numpy.finfo(dtype).eps
    for axis in range(a.ndim):
        exact = a.astype(numpy.longdouble)
        exact -= numpy.log(numpy.exp(exact).sum(axis, keepdims=True))
        total = numpy.log(numpy.exp(a.astype(numpy.longdouble)).sum(axis))
        p = F.softmax(a, axis).array
        numpy.testing.assert_allclose(p, numpy.exp(exact), 4 * unit, unit)
        numpy.testing.assert_allclose(
            F.log_softmax(a, axis).array, exact, unit, 8 * unit
        )
        numpy.testing.assert_allclose(F.logsumexp(a, axis).array, total, unit, 8 * unit)


FEW_POSITIONS = [
    *((2, 1700, 10), (300, 21), (5000, 2), (80, 12, 7), (70, 200, 3), (3, 20000, 5)),
    *((9, 2, 300, 2), (150, 2, 30, 40)),
]


@pytest.mark.parametrize("layout", ["C", "samples last"])
@pytest.mark.parametrize("shape", FEW_POSITIONS, ids=str)
@pytest.mark.parametrize("dtype", "efd")
def test_softmax_along_an_axis_of_few_positions(dtype, shape, layout):
    a, gy = (rng.normal(size=shape).astype(dtype) for _ in range(2))
    axis, unit = len(shape) - 2, numpy.finfo(dtype).eps
    smallest = numpy.finfo(dtype).smallest_subnormal
    if layout == "samples last":
        a = numpy.moveaxis(numpy.moveaxis(a, 0, -1).copy(), -1, 0)
    p = numpy.exp(a.astype("longdouble"))
    p /= p.sum(axis, keepdims=True)
    slope, log_slope = (v - v.sum(axis, keepdims=True) * p for v in (p * gy, gy))
    for f, exact, gradient, atol in (
        (F.softmax, p, slope, smallest),
        (F.log_softmax, numpy.log(p), log_slope, 8 * unit),
    ):
        x = renga.Variable(a)
        y = f(x, axis)
        numpy.testing.assert_allclose(y.array, exact, 8 * unit, atol)
        y.grad = gy
        y.backward()
        numpy.testing.assert_allclose(x.grad, gradient, 32 * unit, 16 * unit)
    total = numpy.log(numpy.exp(a.astype("longdouble")).sum(axis))
    numpy.testing.assert_allclose(F.logsumexp(a, axis).array, total, 8 * unit)


@pytest.mark.parametrize("n", [10, 16, 40])
def test_softmax_of_bfloat16(n):
    a = rng.integers(-32, 33, (70, n)) / 8  # exact in bfloat16
    exact = numpy.exp(a) / numpy.exp(a).sum(1, keepdims=True)
    with renga.using_config("dtype", renga.mixed_bfloat16):
        x = renga._core.as_activation(renga.Variable(a.astype("f")))
        numpy.testing.assert_allclose(F.softmax(x).array, exact, 2**-8)
