"""Names of Chainer's modules that programs import: what they compute."""

import io

import numpy
import pytest

import renga
from renga.chainer.names import arrays, environment, links, progress

X = numpy.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("x", [X[0, 0], X[0], X], ids=["1", "2", "3"])
def test_arrays_as_vectors_and_matrices(x):
    with pytest.warns(DeprecationWarning, match="as_vec is deprecated") as caught:
        vector = arrays.as_vec(x)
    assert caught[0].filename == __file__
    numpy.testing.assert_array_equal(vector, x.ravel())
    assert (vector is x) == (x.ndim == 1)
    with pytest.warns(DeprecationWarning, match="as_mat is deprecated"):
        matrix = arrays.as_mat(x)
    numpy.testing.assert_array_equal(matrix, x.reshape(len(x), -1))
    assert (matrix is x) == (x.ndim == 2)


def test_commands_that_succeed():
    for command, succeeds in ((["true"], True), (["false"], False), (["/"], False)):
        assert environment.is_return_code_zero(command) is succeeds


def test_speed_over_the_last_hundred_calls(monkeypatch):
    clock = iter(10 + 2 * numpy.arange(150.0))
    monkeypatch.setattr(progress.time, "time", lambda: next(clock))
    bar = progress.ProgressBar(out=io.StringIO())
    assert bar.update_speed(0, 0) == (float("inf"), float("inf"))
    for i in range(1, 50):  # two seconds each
        assert bar.update_speed(3 * i, i / 4) == pytest.approx((1.5, 1 / 8))
    for i in range(100):  # the first of which is the first of the last hundred
        speeds = bar.update_speed(150 + i, 12 + i / 2)
    assert speeds == pytest.approx((0.5, 1 / 4))


def test_power_iterations_find_the_largest_singular_value():
    found = links.l2normalize(numpy, numpy.array([3.0, 4.0]), eps=5.0)
    numpy.testing.assert_allclose(found, [0.3, 0.4])
    matrix = numpy.array([[2.0, 1, 0], [0, 1, -1], [3, 0, 1], [1, 1, 1]])
    weight = renga.Variable(matrix)
    u, v = links.update_approximate_vectors(weight, numpy.ones(4), 100, 1e-12)
    numpy.testing.assert_allclose(numpy.linalg.norm(u), 1)
    largest = numpy.linalg.svd(matrix)[1][0]
    y = links.calculate_max_singular_value(weight, u, v)
    numpy.testing.assert_allclose(y.array, largest)
