"""Linear: sizes, values and gradients."""

import numpy
import pytest

import renga
import renga.links as L


def make_input(*shape):
    rng = numpy.random.default_rng(0)
    return rng.normal(size=shape).astype(numpy.float32)


def test_values_and_gradients():
    link = L.Linear(3, 2, initial_bias=numpy.array([1, -1]))
    x, gy = renga.Variable(make_input(4, 3)), make_input(4, 2)
    y = link(x)
    W = link.W.array
    numpy.testing.assert_allclose(y.array, x.array @ W.T + [1, -1], rtol=1e-5)
    link.cleargrads()
    y.grad = gy
    y.backward()
    numpy.testing.assert_allclose(link.W.grad, gy.T @ x.array, rtol=1e-5, atol=1e-6)
    numpy.testing.assert_allclose(link.b.grad, gy.sum(0), rtol=1e-5)
    numpy.testing.assert_allclose(x.grad, gy @ W, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", [lambda: L.Linear(None, 5), lambda: L.Linear(5)])
def test_size_of_the_first_input(make):
    link = make()
    assert (link.in_size, link.out_size) == (None, 5)
    assert not link.W.is_initialized
    assert link(make_input(2, 3, 4)).shape == (2, 5)
    assert link.W.shape == (5, 12)


def test_batch_axes():
    link = L.Linear(3)
    x = make_input(2, 4, 5)
    y = link(x, n_batch_axes=2)
    assert link.W.shape == (3, 5)
    expected = numpy.einsum("abi,oi->abo", x, link.W.array)
    numpy.testing.assert_allclose(y.array, expected, rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match="n_batch_axes"):
        link(x, n_batch_axes=0)


def test_initial_values():
    link = L.Linear(2, 3, initialW=numpy.arange(6.0).reshape(3, 2), initial_bias=7)
    numpy.testing.assert_array_equal(link.W.array, [[0, 1], [2, 3], [4, 5]])
    numpy.testing.assert_array_equal(link.b.array, [7, 7, 7])
    assert link.W.dtype == link.b.dtype == numpy.float32
    numpy.testing.assert_array_equal(L.Linear(2, 3).b.array, [0, 0, 0])
    numpy.random.seed(0)
    wide = L.Linear(1000, 100).W.array
    assert wide.std() == pytest.approx(1000**-0.5, rel=0.02)


def test_without_bias():
    link = L.Linear(3, 2, nobias=True)
    assert link.b is None
    assert [name for name, _ in link.namedparams()] == ["/W"]
    x = make_input(4, 3)
    numpy.testing.assert_allclose(link(x).array, x @ link.W.array.T, rtol=1e-4)


def test_from_params():
    W, b = make_input(3, 2), make_input(3)
    link = L.Linear.from_params(W, b)
    numpy.testing.assert_array_equal(link.W.array, W)
    numpy.testing.assert_array_equal(link.b.array, b)
    assert L.Linear.from_params(W).b.array.tolist() == [0] * 3
    link = L.Linear.from_params(renga.Variable(W), nobias=True)
    assert link.b is None
    assert (link.in_size, link.out_size) == (2, 3)


def test_wrong_size():
    with pytest.raises(renga.utils.type_check.InvalidType):
        L.Linear(2, 3)(make_input(4, 3))


def test_text():
    assert str(L.Linear(3, 4)) == "Linear(in_size=3, out_size=4, nobias=False)"


@pytest.mark.parametrize("dtype", [numpy.float16, numpy.float64])
def test_configured_dtype(dtype):
    with renga.using_config("dtype", dtype):
        link = L.Linear(2)
        assert link.b.dtype == dtype
        y = link(make_input(3, 4).astype(dtype))
    assert link.W.dtype == y.dtype == dtype
