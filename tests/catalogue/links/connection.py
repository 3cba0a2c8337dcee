"""Layers of products, sums and blocks of convolutions."""

from __future__ import annotations

import numpy

import renga.functions as F
import renga.links as L
from tests.links.cases import windows

from .row import Case, link

rng = numpy.random.default_rng(0)
X = rng.normal(size=(4, 3))
Z = rng.normal(size=(4, 2))
IMAGE = rng.normal(size=(2, 3, 4, 5))
ARRAY = rng.normal(size=(3, 4))
WORDS = numpy.array([[0, 2, 3], [2, 2, 1]])


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def bilinear(p, x, z):
    y = numpy.einsum("ni,nj,ijk->nk", x, z, p["/W"])
    return y + x @ p["/V1"] + z @ p["/V2"] + p["/b"] if "/b" in p else y


def linear(p, name, x):
    return x @ p[f"/{name}/W"].T + p.get(f"/{name}/b", 0)


def product(p, x):
    return x.reshape(len(x), -1) @ p["/W"].T + p["/b"]


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


link(
    "Bias",
    cases={
        "": Case(lambda: L.Bias(1, (3, 4)), (IMAGE,), lambda p, x: x + last(p["/b"])),
        "of two inputs": Case(
            lambda: L.Bias(), (IMAGE, ARRAY), lambda p, x, b: x + last(b)
        ),
    },
    created="L.Bias(1, (3,))",
    edges="run(L.Bias(1, (3,)), s(N, 3))",
    errors=[
        "L.Bias(0, (-3,)) -> ValueError",
        "L.Bias(0, (2**62,)) -> MemoryError",
    ],
    onnx="exported",
)


link(
    "Scale",
    cases={
        "": Case(lambda: L.Scale(1, (3, 4)), (IMAGE,), lambda p, x: x * last(p["/W"])),
        "with a bias": Case(
            lambda: L.Scale(1, (3, 4), True),
            (IMAGE,),
            lambda p, x: x * last(p["/W"]) + last(p["/bias/b"]),
        ),
        "of two inputs with a bias": Case(
            lambda: L.Scale(bias_term=True, bias_shape=(3, 4)),
            (IMAGE, ARRAY),
            lambda p, x, W: x * last(W) + last(p["/bias/b"]),
        ),
    },
    created="L.Scale(1, (3,), True)",
    edges="run(L.Scale(1, (3,), bias_term=True), s(N, 3))",
    errors=[
        "L.Scale(1, (-3,)) -> ValueError",
        "L.Scale(-9, (3,))(f(2, 3)) -> InvalidType",
    ],
    onnx="exported",
)


link(
    "Bilinear",
    cases={
        "": Case(lambda: L.Bilinear(3, 2, 4), (X, Z), bilinear),
        "without biases": Case(lambda: L.Bilinear(3, 2, 4, True), (X, Z), bilinear),
    },
    half=False,
    created=[
        "L.Bilinear(3, 4, 2)",
        "L.Bilinear(3, 4, 2, True)",
    ],
    edges="run(L.Bilinear(3, 4, 2), s(N, 3), s(N, 4))",
    errors=[
        "L.Bilinear(0, 3, 4) -> Bilinear",
        "L.Bilinear(-2, 3, 4) -> ValueError",
        "L.Bilinear(2**40, 3, 2**40) -> MemoryError",
    ],
    onnx="exported",
)


link(
    "Highway",
    cases={
        "": Case(lambda: L.Highway(3), (X,), highway),
        "of tanh without biases": Case(
            lambda: L.Highway(3, True, F.tanh),
            (X,),
            lambda p, x: highway(p, x, numpy.tanh),
        ),
    },
    created="L.Highway(3)",
    edges="run(L.Highway(3), s(N, 3))",
    errors="L.Highway(-3) -> ValueError",
    onnx="exported",
)


link(
    "Parameter",
    cases=Case(lambda: L.Parameter(X), (), lambda p: p["/W"], half=False),
    edges="run(L.Parameter(numpy.ones((3,), DTYPE)))",
    errors="L.Parameter(None) -> Parameter",
    onnx="exported",
)


link(
    "MLPConvolution2D",
    cases=Case(
        lambda: L.MLPConvolution2D(3, (4, 2), 3, 2, 1, F.tanh),
        (IMAGE,),
        mlp,
        lazy=lambda: L.MLPConvolution2D(None, (4, 2), 3, 2, 1, F.tanh),
    ),
    created="L.MLPConvolution2D(3, (4, 5, 2), 3)",
    edges="run(L.MLPConvolution2D(3, (4, 5, 2), 3), s(N, 3, 5, 5))",
    errors=[
        "L.MLPConvolution2D(3, (4, -4), 3) -> ValueError",
        "L.MLPConvolution2D(3, (), 3) -> AssertionError",
    ],
    onnx="exported",
)


link(
    "Inception",
    cases=Case(
        lambda: L.Inception(3, 2, 3, 4, 2, 3, 2),
        (IMAGE,),
        inception,
        lazy=lambda: L.Inception(None, 2, 3, 4, 2, 3, 2),
        half=False,  # many successive roundings
    ),
    nothing=[(0, 11, 5, 5)],
    created="L.Inception(3, 2, 3, 4, 2, 3, 2)",
    edges="run(L.Inception(3, 2, 3, 4, 2, 3, 2), s(N, 3, 5, 5))",
    errors="L.Inception(-3, 1, 1, 1, 1, 1, 1) -> ValueError",
    onnx="exported",
)


link(
    "InceptionBN",
    cases={
        # Blocks with kinks at every normalized value are checked by their layers.
        "": Case(
            lambda: L.InceptionBN(3, 2, 3, 4, 2, 3, "max", 2),
            (IMAGE,),
            inception_bn,
            lazy=lambda: L.InceptionBN(None, 2, 3, 4, 2, 3, "max", 2),
            half=False,
            gradients=False,
        ),
        "with a stride": Case(
            lambda: L.InceptionBN(3, 0, 3, 4, 2, 3, "max", stride=2),
            (IMAGE,),
            lambda p, x: inception_bn(p, x, 2),
            half=False,
            gradients=False,
        ),
        "of means": Case(
            lambda: L.InceptionBN(3, 2, 3, 4, 2, 3, "avg", 2),
            (IMAGE,),
            lambda p, x: inception_bn(p, x, average=True),
            half=False,
            gradients=False,
        ),
    },
    nothing=[(0, 11, 5, 5)],
    averages=True,
    created=[
        "L.InceptionBN(3, 2, 3, 4, 2, 3, 'max', 2)",
        "L.InceptionBN(3, 0, 3, 4, 2, 3, 'avg', stride=2)",
    ],
    edges=[
        "run(L.InceptionBN(3, 2, 3, 4, 2, 3, 'max', 2), s(N, 3, 5, 5))",
        "run(L.InceptionBN(3, 0, 3, 4, 2, 3, 'avg', stride=2), s(N, 3, 5, 5))",
    ],
    errors="L.InceptionBN(3, 2, -3, 4, 2, 3, 'max', 2) -> ValueError",
    onnx="exported",
)


link(
    "EmbedID",
    cases={
        "": Case(lambda: L.EmbedID(4, 3), (WORDS,), lambda p, x: p["/W"][x]),
        "with words that are ignored": Case(
            lambda: L.EmbedID(4, 3, ignore_label=2),
            (WORDS,),
            lambda p, x: p["/W"][x] * (x != 2)[..., None],
        ),
    },
    created="L.EmbedID(3, 2)",
    edges="run(L.EmbedID(3, 2), i(3, N))",
    errors=[
        "L.EmbedID(0, 3) -> EmbedID",
        "L.EmbedID(3, 0) -> EmbedID",
        "L.EmbedID(-3, 3) -> ValueError",
        "L.EmbedID(3, -3) -> ValueError",
        "L.EmbedID(2**40, 2**40) -> MemoryError",
        "L.EmbedID(2**64, 3) -> MemoryError",
        "L.EmbedID(3.0, 3) -> TypeError",
        "L.EmbedID(None, 3) -> TypeError",
    ],
    onnx="exported",
)


link(
    "Linear",
    cases={
        "": Case(lambda: L.Linear(3, 2), (X,), product, lazy=lambda: L.Linear(None, 2)),
        "of an image": Case(
            lambda: L.Linear(60, 2), (IMAGE,), product, lazy=lambda: L.Linear(2)
        ),
        "with batch axes and no bias": Case(
            lambda: L.Linear(5, 2, nobias=True),
            (IMAGE,),
            lambda p, x: x @ p["/W"].T,
            call=lambda link, x: link(x, n_batch_axes=3),
            lazy=lambda: L.Linear(None, 2, nobias=True),
        ),
    },
    nothing=[(0, 2)],
    created="L.Linear(3, 2)",
    edges=[
        "run(L.Linear(3, 2), s(N, 3))",
        "run(L.Linear(None, 2), s(N, 3))",
        "run(L.Linear(12, 2), s(N, 3, 4))",
    ],
    errors=[
        "L.Linear(0, 3) -> Linear",
        "L.Linear(3, 0) -> Linear",
        "L.Linear(-1, 3) -> ValueError",
        "L.Linear(3, -1) -> ValueError",
        "L.Linear(-3) -> ValueError",
        "L.Linear(2**40, 2**40) -> MemoryError",
        "L.Linear(2**62, 2) -> MemoryError",
        "L.Linear(2**64, 2) -> MemoryError",
        "L.Linear(10**6, 10**6) -> MemoryError",
        "L.Linear(3.0, 2) -> TypeError",
        "L.Linear('3', 2) -> TypeError",
        "L.Linear(3, None) -> Linear",
        "L.Linear(None, None) -> Linear",
        "L.Linear(None, -3) -> ValueError",
        "L.Linear(numpy.int64(3), 2) -> Linear",
        "L.Linear(True, 2) -> Linear",
        "L.Linear(3, 2**64) -> MemoryError",
        "L.Linear(None, 2.5) -> TypeError",
    ],
    onnx="exported",
)
