"""Activations with parameters, against NumPy."""

import numpy
import pytest

import renga
import renga.links as L
from tests.links.cases.link_check import Case, check, fill

rng = numpy.random.default_rng(0)
X = rng.normal(size=(4, 3))
IMAGE = rng.normal(size=(2, 3, 2, 2))


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def maxout(p, x):
    y = x @ p["/linear/W"].T + p.get("/linear/b", 0)
    return y.reshape(len(x), 2, 4).max(2)


def channels(a, x):
    return a.reshape(a.shape + (1,) * (x.ndim - 1 - a.ndim))


def prelu(p, x):
    return numpy.where(x >= 0, x, channels(p["/W"], x) * x)


def swish(p, x):
    return x * sigmoid(channels(p["/beta"], x) * x)


CASES = {
    "Maxout": Case(
        lambda: L.Maxout(3, 2, 4), (X,), maxout, lazy=lambda: L.Maxout(None, 2, 4)
    ),
    "Maxout without bias": Case(
        lambda: L.Maxout(3, 2, 4, initial_bias=None), (X,), maxout
    ),
    "PReLU of one slope": Case(lambda: L.PReLU(), (IMAGE,), prelu),
    "PReLU of channels": Case(lambda: L.PReLU((3,)), (IMAGE,), prelu),
    "PReLU of elements": Case(lambda: L.PReLU((3, 2, 2)), (IMAGE,), prelu),
    "Swish": Case(lambda: L.Swish((3,)), (IMAGE,), swish),
    "Swish of elements": Case(
        lambda: L.Swish((3, 2, 2)), (IMAGE,), swish, lazy=lambda: L.Swish(None)
    ),
    "SimplifiedDropconnect outside training": Case(
        lambda: L.SimplifiedDropconnect(3, 2),
        (X,),
        lambda p, x: x @ p["/W"].T + p["/b"],
        call=lambda link, x: link(x, train=False),
        lazy=lambda: L.SimplifiedDropconnect(None, 2),
    ),
    "SimplifiedDropconnect with a mask": Case(
        lambda: L.SimplifiedDropconnect(3, 2, ratio=0.2, nobias=True),
        (X,),
        lambda p, x: numpy.einsum("ni,noi,oi->no", x, MASK, p["/W"]) / 0.8,
        call=lambda link, x: link(x, mask=MASK),
    ),
}
MASK = rng.random((4, 2, 3)) > 0.5


@pytest.mark.parametrize("name", CASES)
def test_link(name):
    check(CASES[name])


def test_dropconnect_drops_weights():
    link = L.SimplifiedDropconnect(1, 500, ratio=0.3)
    fill(link)
    x = numpy.ones((40, 1), "f")
    kept = link(x).array != link.b.array
    numpy.testing.assert_allclose(kept.mean(), 0.7, atol=0.02)
    same = link(x, use_batchwise_mask=False).array != link.b.array
    assert (same == same[0]).all()


def test_initial_values_of_a_maxout():
    def by_pool(array):
        assert array.shape[:2] == (2, 4)
        array[...] = numpy.arange(4).reshape((1, 4) + (1,) * (array.ndim - 2))

    link = L.Maxout(3, 2, 4, initialW=by_pool, initial_bias=by_pool)
    assert link.linear.W.array[:, 0].tolist() == [0, 1, 2, 3] * 2
    assert link.linear.b.array.tolist() == [0, 1, 2, 3] * 2
    W = rng.normal(size=(2, 4, 3))
    link = L.Maxout(3, 2, 4, initialW=W, initial_bias=W[:, :, 0])
    numpy.testing.assert_array_equal(link.linear.W.array, W.reshape(8, 3).astype("f"))
    numpy.testing.assert_array_equal(link.linear.b.array, W[..., 0].ravel().astype("f"))
    for wrong in ({"initialW": W[0]}, {"initial_bias": W[0, 0]}):
        with pytest.raises(ValueError, match="axes, got"):
            L.Maxout(3, 2, 4, **wrong)


def test_defaults():
    assert L.PReLU().W.array == 0.25
    assert L.Swish(()).beta.array == 1
    assert not L.Maxout(3, 2, 4).linear.b.array.any()


@pytest.mark.parametrize("link", [L.PReLU((2,)), L.Swish((2,))])
def test_wrong_shapes(link):
    with pytest.raises(renga.utils.type_check.InvalidType):
        link(X.astype("f"))
