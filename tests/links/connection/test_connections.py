"""Biases, scales, products, highways and 1x1 convolution networks."""

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from tests.links.cases import windows
from tests.links.cases.link_check import Case, check

rng = numpy.random.default_rng(0)
X = rng.normal(size=(4, 3))
Z = rng.normal(size=(4, 2))
IMAGE = rng.normal(size=(2, 3, 4, 5))
ARRAY = rng.normal(size=(3, 4))


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def bilinear(p, x, z):
    y = numpy.einsum("ni,nj,ijk->nk", x, z, p["/W"])
    return y + x @ p["/V1"] + z @ p["/V2"] + p["/b"] if "/b" in p else y


def linear(p, name, x):
    return x @ p[f"/{name}/W"].T + p.get(f"/{name}/b", 0)


def highway(p, x, activate=lambda x: numpy.maximum(x, 0)):
    t = sigmoid(linear(p, "transform", x))
    return t * activate(linear(p, "plain", x)) + (1 - t) * x


def conv(p, name, x, pad=0, stride=1):
    W, b = p[f"/{name}/W"], p.get(f"/{name}/b", 0)
    return windows.convolution(x, W, b, stride, pad)


def relu(x):
    return numpy.maximum(x, 0)


def mlp(p, x):
    return conv(p, "1", numpy.tanh(conv(p, "0", x, pad=1, stride=2)))


def inception(p, x):
    pooled = windows.pooled(x, numpy.max, 3, 1, 1, -numpy.inf)
    ways = (
        conv(p, "conv1", x),
        conv(p, "conv3", relu(conv(p, "proj3", x)), pad=1),
        conv(p, "conv5", relu(conv(p, "proj5", x)), pad=2),
        conv(p, "projp", pooled),
    )
    return relu(numpy.concatenate(ways, 1))


def inception_bn(p, x, stride=1, average=False):
    def unit(name, x, stride=1):
        y = conv(p, name, x, p[f"/{name}/W"].shape[2] // 2, stride)
        mean, variance = (f((0, 2, 3), keepdims=True) for f in (y.mean, y.var))
        scale, shift = (p[f"/{name}n/{a}"][:, None, None] for a in ("gamma", "beta"))
        return relu((y - mean) / numpy.sqrt(variance + 2e-5) * scale + shift)

    reduce, fill = (numpy.mean, 0) if average else (numpy.max, -numpy.inf)
    pooled = windows.pooled(x, reduce, 3, stride, 1, fill)
    ways = [
        unit("conv3", unit("proj3", x), stride),
        unit("conv33b", unit("conv33a", unit("proj33", x)), stride),
        unit("poolp", pooled) if "/poolp/W" in p else pooled,
    ]
    if "/conv1/W" in p:
        ways.insert(0, unit("conv1", x))
    return numpy.concatenate(ways, 1)


def last(a):
    return a[..., None]


CASES = {
    "Bias": Case(lambda: L.Bias(1, (3, 4)), (IMAGE,), lambda p, x: x + last(p["/b"])),
    "Bias of two inputs": Case(
        lambda: L.Bias(), (IMAGE, ARRAY), lambda p, x, b: x + last(b)
    ),
    "Scale": Case(lambda: L.Scale(1, (3, 4)), (IMAGE,), lambda p, x: x * last(p["/W"])),
    "Scale with a bias": Case(
        lambda: L.Scale(1, (3, 4), True),
        (IMAGE,),
        lambda p, x: x * last(p["/W"]) + last(p["/bias/b"]),
    ),
    "Scale of two inputs with a bias": Case(
        lambda: L.Scale(bias_term=True, bias_shape=(3, 4)),
        (IMAGE, ARRAY),
        lambda p, x, W: x * last(W) + last(p["/bias/b"]),
    ),
    "Bilinear": Case(lambda: L.Bilinear(3, 2, 4), (X, Z), bilinear),
    "Bilinear without biases": Case(
        lambda: L.Bilinear(3, 2, 4, True), (X, Z), bilinear
    ),
    "Highway": Case(lambda: L.Highway(3), (X,), highway),
    "Highway of tanh without biases": Case(
        lambda: L.Highway(3, True, F.tanh),
        (X,),
        lambda p, x: highway(p, x, numpy.tanh),
    ),
    "Parameter": Case(lambda: L.Parameter(X), (), lambda p: p["/W"], half=False),
    "MLPConvolution2D": Case(
        lambda: L.MLPConvolution2D(3, (4, 2), 3, 2, 1, F.tanh),
        (IMAGE,),
        mlp,
        lazy=lambda: L.MLPConvolution2D(None, (4, 2), 3, 2, 1, F.tanh),
    ),
    "Inception": Case(
        lambda: L.Inception(3, 2, 3, 4, 2, 3, 2),
        (IMAGE,),
        inception,
        lazy=lambda: L.Inception(None, 2, 3, 4, 2, 3, 2),
        half=False,  # many successive roundings
    ),
    # Blocks with kinks at every normalized value are checked by their layers.
    "InceptionBN": Case(
        lambda: L.InceptionBN(3, 2, 3, 4, 2, 3, "max", 2),
        (IMAGE,),
        inception_bn,
        lazy=lambda: L.InceptionBN(None, 2, 3, 4, 2, 3, "max", 2),
        half=False,
        gradients=False,
    ),
    "InceptionBN with a stride": Case(
        lambda: L.InceptionBN(3, 0, 3, 4, 2, 3, "max", stride=2),
        (IMAGE,),
        lambda p, x: inception_bn(p, x, 2),
        half=False,
        gradients=False,
    ),
    "InceptionBN of means": Case(
        lambda: L.InceptionBN(3, 2, 3, 4, 2, 3, "avg", 2),
        (IMAGE,),
        lambda p, x: inception_bn(p, x, average=True),
        half=False,
        gradients=False,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_link(name):
    check(CASES[name])


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
