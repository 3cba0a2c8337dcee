"""Biases, scales, products, highways and 1x1 convolution networks."""

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from tests.catalogue.links.connection import X


def test_initial_values():
    assert (L.Scale(1, (2,)).W.array == 1).all()
    assert not L.Bias(1, (2,)).b.array.any()
    link = L.Highway(2)
    assert (link.transform.b.array == -1).all() and not link.plain.b.array.any()
    link = L.Highway(2, False, F.relu, 1, 2, 3, 4)
    assert link.plain.W.array[0, 0] == 1 and link.transform.W.array[0, 0] == 2
    assert link.plain.b.array[0] == 3 and link.transform.b.array[0] == 4
    link = L.Bilinear(3, 2, 4, initialW=1, initial_bias=(2, 3, 4))
    values = [p.array.ravel()[0] for p in (link.W, link.V1, link.V2, link.b)]
    assert values == [1, 2, 3, 4]
    link = L.MLPConvolution2D(3, (4, 2), 3, conv_init=2, bias_init=1)
    assert link[1].W.array.min() == 2 and link[1].b.array.tolist() == [1, 1]
    link = L.Inception(1, 1, 1, 1, 1, 1, 1, 3, 4)
    assert {float(p.array.min()) for p in link.params()} == {3, 4}


def test_inputs_that_are_too_many_or_missing():
    x = X.astype("f")
    for link, inputs in (
        (L.Bias(1, (3,)), (x, x)),
        (L.Bias(), (x,)),
        (L.Scale(1, (3,)), (x, x)),
        (L.Scale(), (x,)),
    ):
        with pytest.raises(ValueError, match="values to unpack"):
            link(*inputs)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="bias_shape"):
        L.Scale(bias_term=True)
    with pytest.raises(ValueError, match="tuple"):
        L.Bilinear(3, 2, 4, initial_bias=numpy.ones(4))
    with pytest.raises(renga.utils.type_check.InvalidType):
        L.Bilinear(3, 2, 4)(X.astype("f"), X.astype("f"))
    with pytest.raises(NotImplementedError, match="median"):
        L.InceptionBN(3, 0, 3, 4, 2, 3, "median", 2)
    with pytest.raises(AssertionError, match="out1"):
        L.InceptionBN(3, 2, 3, 4, 2, 3, "max", 2, stride=2)
    with pytest.raises(AssertionError, match="proj_pool"):
        L.InceptionBN(3, 2, 3, 4, 2, 3, "max")
    with pytest.raises(ValueError, match="conv_init"):
        L.MLPConvolution2D(3, (4, 2), 3, wscale=1)
    with pytest.raises(TypeError, match="nobias"):
        L.MLPConvolution2D(3, (4, 2), 3, nobias=True)
    with pytest.raises(AssertionError):
        L.MLPConvolution2D(3, (), 3)


def test_zero_grads():
    link = L.Bilinear(3, 2, 4)
    with pytest.warns(DeprecationWarning):
        link.zero_grads()
    assert not any(p.grad.any() for p in link.params())


def test_parameter_accepts_the_old_argument():
    link = L.Parameter(X)
    assert link("on") is link.W and link(volatile="off") is link.W
