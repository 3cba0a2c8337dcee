"""Variables where NumPy expects arrays."""

import collections.abc
import operator

import numpy
import pytest

import renga

x = numpy.arange(6, dtype="f").reshape(2, 3)


def test_array_of_a_variable():
    v = renga.Variable(x)
    assert numpy.asarray(v) is x
    copied = numpy.array(v)
    assert copied is not x and copied.dtype == x.dtype
    numpy.testing.assert_array_equal(copied, x)
    assert not numpy.shares_memory(copied, x)
    assert numpy.asarray(v, "d").dtype == numpy.float64
    numpy.testing.assert_array_equal(numpy.array([v, v]), numpy.stack([x, x]))
    assert numpy.asarray(renga.Variable(numpy.array(2.0))).shape == ()
    with pytest.raises(RuntimeError, match="initialized"):
        numpy.asarray(renga.Parameter())


@pytest.mark.skipif(
    numpy.lib.NumpyVersion(numpy.__version__) < "2.0.0", reason="NumPy 2"
)
def test_copies_as_numpy_2_asks_for_them():
    v = renga.Variable(x)
    assert numpy.array(v, copy=False) is x
    assert numpy.array(v, x.dtype, copy=False) is x
    with pytest.raises(ValueError, match="float32 without a copy"):
        numpy.array(v, "d", copy=False)
    assert not numpy.shares_memory(numpy.array(v, "d", copy=None), x)


z = numpy.random.default_rng(0).normal(size=(2, 3, 4))
w = numpy.random.default_rng(1).normal(size=(2, 3, 4))
M = numpy.random.default_rng(2).normal(size=(4, 5))

# What NumPy computes with arrays is the reference; its derivatives are numerical.
WITH_GRADIENTS = {
    "sum": lambda x: numpy.sum(x, axis=(0, 2), keepdims=True),
    "prod": lambda x: numpy.prod(x, 1),
    "max": lambda x: numpy.max(x, axis=-1),
    "min": lambda x: numpy.min(x),
    "mean": lambda x: numpy.mean(x, axis=1),
    "average": lambda x: numpy.average(x, 2, numpy.array([1.0, 2, 3, 4])),
    "cumsum": lambda x: numpy.cumsum(x),
    "cumprod": lambda x: numpy.cumprod(x, axis=1),
    "clip": lambda x: numpy.clip(x, -0.5, 0.5),
    "clip by arrays": lambda x: numpy.clip(x, w - 1, w),
    "transpose": lambda x: numpy.transpose(x, (1, 0, 2)),
    "reshape": lambda x: numpy.reshape(x, -1),
    "reshape by an integer of NumPy": lambda x: numpy.reshape(x, numpy.int64(24)),
    "ravel": numpy.ravel,
    "squeeze": lambda x: numpy.squeeze(x[:1]),
    "expand_dims": lambda x: numpy.expand_dims(x, (-1, 1)),
    "swapaxes": lambda x: numpy.swapaxes(x, 0, 2),
    "moveaxis": lambda x: numpy.moveaxis(x, 0, -1),
    "rollaxis": lambda x: numpy.rollaxis(x, 2),
    "broadcast_to": lambda x: numpy.broadcast_to(x, (5, 2, 3, 4)),
    "broadcast_arrays": lambda x: numpy.broadcast_arrays(x[:, :1], w)[0],
    "concatenate": lambda x: numpy.concatenate([x, w], axis=1),
    "concatenate, flat": lambda x: numpy.concatenate((x, x * 2), axis=None),
    "stack of two dtypes": lambda x: numpy.stack([w.astype("f"), x], -1),
    "vstack": lambda x: numpy.vstack([x[0, 0], w[0, 0]]),
    "hstack": lambda x: numpy.hstack([x, w]),
    "dstack": lambda x: numpy.dstack([x, w]),
    "where": lambda x: numpy.where(w > 0, x, 0),
    "where, broadcast": lambda x: numpy.where([True, False, True, False], w[:1], x),
    "tile": lambda x: numpy.tile(x, (2, 1, 2)),
    "repeat": lambda x: numpy.repeat(x, [1, 0, 2], axis=1),
    "flip": lambda x: numpy.flip(x, (0, -1)),
    "fliplr": numpy.fliplr,
    "flipud": numpy.flipud,
    "diagonal": numpy.diagonal,
    "pad": lambda x: numpy.pad(x, ((0, 0), (1, 2), (0, 1)), mode="edge"),
    "split": lambda x: numpy.split(x, 2, axis=2)[1],
    "copy": numpy.copy,
    "atleast_1d": lambda x: numpy.atleast_1d(x[0, 0, 0]),
    "atleast_2d": lambda x: numpy.atleast_2d(x[0, 0]),
    "atleast_3d": lambda x: numpy.atleast_3d(x[0]),
    "dot": lambda x: numpy.dot(x, numpy.ones((3, 4, 2))),
    "dot of rows": lambda x: numpy.dot(x[0, 0], x[0, 1]),
    "tensordot": lambda x: numpy.tensordot(x, M, 1),
    "einsum": lambda x: numpy.einsum("ijk,ijk->i", x, w),
    "inv": lambda x: numpy.linalg.inv(x[:, :2, :2]),
    "det": lambda x: numpy.linalg.det(x[0, :2, :2]),
    "exp": numpy.exp,
    "negative": numpy.negative,
    "absolute": numpy.abs,
    "reciprocal": numpy.reciprocal,
    "maximum": lambda x: numpy.maximum(w, x),
    "minimum": lambda x: numpy.minimum(x, 0.1),
    "subtract": lambda x: numpy.subtract(w, x),
    "matmul": lambda x: numpy.matmul(w[0, 0], x[0].T),
    "power": lambda x: numpy.power(x * x, 1.5),
    "arctan2": lambda x: numpy.arctan2(w, x),
}


@pytest.mark.parametrize("name", WITH_GRADIENTS)
def test_functions_with_a_derivative_keep_the_graph(name):
    function = WITH_GRADIENTS[name]
    v, expected = renga.Variable(z.copy()), function(z)
    y = function(v)
    assert y.shape == expected.shape and y.dtype == expected.dtype
    numpy.testing.assert_allclose(y.array, expected, 1e-12)
    factors = numpy.cos(numpy.arange(expected.size)).reshape(expected.shape)
    renga.functions.sum(y * factors).backward()
    eps, direction = 1e-6, w * w - 0.3
    ends = [(function(z + s * direction) * factors).sum() for s in (eps, -eps)]
    slope = (ends[0] - ends[1]) / (2 * eps)
    assert (v.grad * direction).sum() == pytest.approx(slope, 1e-6, 1e-7)


@pytest.mark.parametrize(
    "function",
    [
        *(numpy.argmax, numpy.argsort, numpy.shape, numpy.ndim, numpy.size, numpy.any),
        *(numpy.zeros_like, numpy.isnan, numpy.where, numpy.round, numpy.array_repr),
        lambda x: numpy.allclose(x, x),
        lambda x: numpy.array_equal(x, x),
    ],
)
def test_functions_without_a_derivative_take_the_array(function):
    got, expected = function(renga.Variable(x)), function(x)
    assert type(got) is type(expected)
    numpy.testing.assert_equal(got, expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: numpy.expand_dims(x, 3),
        lambda x: numpy.expand_dims(x, -4),
        lambda x: numpy.expand_dims(x, (0, 0)),
        lambda x: numpy.flip(x, 2),
        lambda x: numpy.flip(x, (1, -1)),
        lambda x: numpy.where([True, False, True], x),
    ],
)
def test_arguments_that_numpy_refuses(function):
    with pytest.raises(Exception) as expected:
        function(x)
    with pytest.raises(type(expected.value)):
        function(renga.Variable(x))


def test_files_and_assertions_take_the_array(tmp_path):
    v = renga.Variable(x)
    numpy.save(tmp_path / "x.npy", v)
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "x.npy"), v)
    numpy.testing.assert_allclose(v, x)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (numpy.var, "numpy.var"),
        (numpy.median, "numpy.median"),
        (numpy.sort, "numpy.sort"),
        (numpy.linalg.norm, "numpy.linalg.norm"),
        (numpy.add.reduce, "numpy.add.reduce"),
        (lambda x: numpy.logaddexp(x, x), "numpy.logaddexp"),
        (lambda x: numpy.sum(x, out=numpy.empty(())), "numpy.sum"),
        (lambda x: numpy.add(x, 1, out=numpy.empty((2, 3))), "numpy.add"),
        (lambda v: numpy.add(x, 1, out=v), "numpy.add"),
    ],
)
def test_what_would_lose_a_gradient_is_refused(function, name):
    with pytest.raises(TypeError, match=f"^{name}: .*gradient would be lost"):
        function(renga.Variable(x.copy()))


def test_where_no_gradient_is_asked_for_any_function_takes_the_array():
    v = renga.Variable(x)
    with renga.no_backprop_mode():
        assert numpy.median(v) == 2.5
    assert numpy.median(renga.Variable(x, requires_grad=False)) == 2.5
    assert numpy.sum(renga.Variable(numpy.arange(4))) == 6


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "truediv", "floordiv", "pow", "matmul"]
)
def test_an_array_changed_in_place_by_a_variable_becomes_a_variable(name):
    if name == "matmul" and numpy.lib.NumpyVersion(numpy.__version__) < "1.25.0":
        pytest.skip("NumPy 1.25")
    a = numpy.arange(1.0, 5).reshape(2, 2)
    before, v = a.copy(), renga.Variable(a / 2 + 1)
    y = getattr(operator, f"i{name}")(a, v)
    assert isinstance(y, renga.Variable)
    expected = getattr(operator, name)(before, v.array)
    numpy.testing.assert_array_equal(y.array, expected)
    numpy.testing.assert_array_equal(a, before)


def test_arrays_on_the_left_leave_operators_to_variables():
    v = renga.Variable(x + 1)
    for y in (x + v, x - v, x * v, x / v, x // v, x**v, x @ v.T, numpy.float32(2) * v):
        assert isinstance(y, renga.Variable)
    for compare in (lambda: x == v, lambda: v < x, lambda: v == v):
        with pytest.raises(TypeError):
            compare()
    with pytest.raises(TypeError):
        numpy.less(v, 0)


def test_iteration():
    """Only by len() and v[i], as in Chainer: programs take an Iterable for a list."""
    rows = list(renga.Variable(x))
    assert all(isinstance(row, renga.Variable) for row in rows)
    numpy.testing.assert_array_equal([row.array for row in rows], x)
    backwards = [row.array for row in reversed(renga.Variable(x))]
    numpy.testing.assert_array_equal(backwards, x[::-1])
    assert not isinstance(renga.Variable(x), collections.abc.Iterable)
    assert not isinstance(renga.Parameter(x), collections.abc.Iterable)
    # The index error of v[0] ends it.
    assert list(renga.Variable(numpy.array(3.0))) == []
    assert list(renga.Variable(numpy.zeros((0, 2)))) == []
    with pytest.raises(RuntimeError):
        list(renga.Parameter())


def test_plot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    (line,) = axes.plot(renga.Variable(x[0]), renga.Variable(x[1]))
    numpy.testing.assert_array_equal(line.get_xdata(), x[0])
    numpy.testing.assert_array_equal(line.get_ydata(), x[1])
    (line,) = axes.plot(renga.Variable(x[1]))
    numpy.testing.assert_array_equal(line.get_ydata(), x[1])
