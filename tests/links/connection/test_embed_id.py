"""EmbedID: rows, their gradients, and the ignored label."""

import numpy
import pytest

import renga
import renga.links as L


def test_rows_and_gradients():
    link = L.EmbedID(4, 3)
    x = numpy.array([[0, 2], [2, 3]])
    y = link(x)
    numpy.testing.assert_array_equal(y.array, link.W.array[x])
    link.cleargrads()
    gy = y.grad = numpy.arange(12, dtype=numpy.float32).reshape(2, 2, 3)
    y.backward()
    expected = numpy.zeros((4, 3))
    numpy.add.at(expected, x, gy)
    numpy.testing.assert_array_equal(link.W.grad, expected)


def test_ignored_label():
    link = L.EmbedID(3, 2, initialW=5.0, ignore_label=-1)
    y = link(numpy.array([0, -1]))
    numpy.testing.assert_array_equal(y.array, [[5, 5], [0, 0]])
    link.cleargrads()
    y.grad = numpy.ones((2, 2), numpy.float32)
    y.backward()
    numpy.testing.assert_array_equal(link.W.grad, [[1, 1], [0, 0], [0, 0]])


@pytest.mark.parametrize("shape", [(2, 3), (2, 4, 3)])
def test_scores(shape):
    link = L.EmbedID(4, 3)
    x = renga.Variable(numpy.random.RandomState(0).normal(size=shape).astype("f"))
    y = link.attend(x)
    numpy.testing.assert_allclose(y.array, x.array @ link.W.array.T, 1e-5, 1e-6)
    link.cleargrads()
    y.grad = numpy.ones(y.shape, "f")
    y.backward()
    rows = x.array.reshape(-1, 3).sum(0)
    numpy.testing.assert_allclose(link.W.grad, [rows] * 4, 1e-5, 1e-6)
    numpy.testing.assert_allclose(
        x.grad, numpy.broadcast_to(link.W.array.sum(0), shape), 1e-5, 1e-6
    )


def test_initial_values():
    numpy.random.seed(0)
    W = L.EmbedID(200, 100).W.array
    assert W.std() == pytest.approx(1.0, rel=0.02)
    values = numpy.arange(6.0, dtype=numpy.float32).reshape(3, 2)
    numpy.testing.assert_array_equal(L.EmbedID(3, 2, values).W.array, values)
    link = L.EmbedID.from_params(renga.Variable(values), ignore_label=1)
    numpy.testing.assert_array_equal(link.W.array, values)
    assert link.ignore_label == 1


def test_floats_are_no_labels():
    with pytest.raises(renga.utils.type_check.InvalidType):
        L.EmbedID(3, 2)(numpy.array([0.0, 1.0]))
