"""Variables where NumPy expects arrays."""

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


@pytest.mark.parametrize(
    "function",
    [
        numpy.mean,
        numpy.sum,
        numpy.max,
        numpy.argmax,
        numpy.median,
        numpy.transpose,
        numpy.shape,
        numpy.ndim,
        numpy.size,
        numpy.zeros_like,
        lambda x: numpy.sum(x, axis=0, keepdims=True),
        lambda x: numpy.concatenate([x, x], axis=1),
        lambda x: numpy.stack((x, x)),
        lambda x: numpy.dot(x, numpy.ones((3, 2))),
        lambda x: numpy.einsum("ij->j", x),
        lambda x: numpy.clip(x, 1, 2),
        lambda x: numpy.where([True, False, True], x, 0),
        lambda x: numpy.allclose(x, x),
        lambda x: numpy.linalg.norm(x),
    ],
)
def test_functions_of_numpy(function):
    got, expected = function(renga.Variable(x)), function(x)
    assert type(got) is type(expected)
    numpy.testing.assert_array_equal(got, expected)


def test_arrays_on_the_left_leave_operators_to_variables():
    v = renga.Variable(x + 1)
    for y in (x + v, x - v, x * v, x / v, x // v, x**v, x @ v.T, numpy.float32(2) * v):
        assert isinstance(y, renga.Variable)
    for compare in (lambda: x == v, lambda: v < x, lambda: v == v):
        with pytest.raises(TypeError):
            compare()
    # They would disconnect the graph silently.
    with pytest.raises(TypeError):
        numpy.exp(v)


def test_iteration():
    rows = list(renga.Variable(x))
    assert all(isinstance(row, renga.Variable) for row in rows)
    numpy.testing.assert_array_equal([row.array for row in rows], x)
    with pytest.raises(TypeError):
        iter(renga.Variable(numpy.array(3.0)))


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
