"""Activations with parameters, against NumPy."""

import numpy
import pytest

import renga
import renga.links as L
from tests.catalogue.links.activation import X, rng
from tests.links.cases.link_check import fill


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
