"""Activations with parameters."""

from __future__ import annotations

import numpy

import renga.links as L

from .row import Case, link

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


MASK = rng.random((4, 2, 3)) > 0.5


link(
    "Maxout",
    cases={
        "": Case(
            lambda: L.Maxout(3, 2, 4), (X,), maxout, lazy=lambda: L.Maxout(None, 2, 4)
        ),
        "without bias": Case(
            lambda: L.Maxout(3, 2, 4, initial_bias=None), (X,), maxout
        ),
    },
    created="L.Maxout(3, 2, 4)",
    edges="run(L.Maxout(3, 2, 4), s(N, 3))",
    errors=[
        "L.Maxout(3, 2, 0) -> ValueError",
        "L.Maxout(3, 2, -1) -> ValueError",
        "L.Maxout(3, -2, 2) -> ValueError",
        "L.Maxout(3, 2, 2**40) -> MemoryError",
        "L.Maxout(3, 2, 2**64) -> MemoryError",
    ],
    onnx="exported",
)


link(
    "PReLU",
    cases={
        "of one slope": Case(lambda: L.PReLU(), (IMAGE,), prelu),
        "of channels": Case(lambda: L.PReLU((3,)), (IMAGE,), prelu),
        "of elements": Case(lambda: L.PReLU((3, 2, 2)), (IMAGE,), prelu),
    },
    created="L.PReLU((3,))",
    edges="run(L.PReLU((3,)), s(N, 3))",
    errors=[
        "L.PReLU((-3,)) -> ValueError",
        "L.PReLU((2**62,)) -> MemoryError",
    ],
    onnx="exported",
)


link(
    "Swish",
    cases={
        "": Case(lambda: L.Swish((3,)), (IMAGE,), swish),
        "of elements": Case(
            lambda: L.Swish((3, 2, 2)), (IMAGE,), swish, lazy=lambda: L.Swish(None)
        ),
    },
    created=[
        "L.Swish((3,))",
        "L.Swish(None)",
    ],
    edges="run(L.Swish((3,)), s(N, 3))",
    errors="L.Swish((-3,)) -> ValueError",
    onnx="exported",
)


link(
    "SimplifiedDropconnect",
    cases={
        "outside training": Case(
            lambda: L.SimplifiedDropconnect(3, 2),
            (X,),
            lambda p, x: x @ p["/W"].T + p["/b"],
            call=lambda link, x: link(x, train=False),
            lazy=lambda: L.SimplifiedDropconnect(None, 2),
        ),
        "with a mask": Case(
            lambda: L.SimplifiedDropconnect(3, 2, ratio=0.2, nobias=True),
            (X,),
            lambda p, x: numpy.einsum("ni,noi,oi->no", x, MASK, p["/W"]) / 0.8,
            call=lambda link, x: link(x, mask=MASK),
        ),
    },
    draws=True,
    created="L.SimplifiedDropconnect(3, 2)",
    edges="run(L.SimplifiedDropconnect(3, 2), s(N, 3))",
    errors=[
        "L.SimplifiedDropconnect(-3, 4) -> ValueError",
        "L.SimplifiedDropconnect(3, 4, ratio=2) -> SimplifiedDropconnect",
    ],
    onnx="exported",
)
