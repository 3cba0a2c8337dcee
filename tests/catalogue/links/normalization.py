"""Normalizations of batches, samples and groups."""

from __future__ import annotations

import numpy

import renga.links as L

from .row import Case, link

rng = numpy.random.default_rng(0)
X = rng.normal(1, 2, size=(4, 6))
IMAGE = rng.normal(1, 2, size=(2, 4, 3, 2))


def standardized(x, axis, eps):
    mean, variance = x.mean(axis, keepdims=True), x.var(axis, keepdims=True)
    return (x - mean) / numpy.sqrt(variance + eps)


def layer(p, x, eps=1e-6):
    return standardized(x, 1, eps) * p["/gamma"] + p["/beta"]


def group(p, x, groups, eps=1e-5):
    parts = x.reshape(len(x), groups, -1)
    y = standardized(parts, 2, eps).reshape(x.shape)
    channels = (-1,) + (1,) * (x.ndim - 2)
    return y * p["/gamma"].reshape(channels) + p["/beta"].reshape(channels)


link(
    "LayerNormalization",
    cases={
        "": Case(
            lambda: L.LayerNormalization(6),
            (X,),
            layer,
            lazy=lambda: L.LayerNormalization(),
        ),
        "with a large eps": Case(
            lambda: L.LayerNormalization(6, 0.5), (X,), lambda p, x: layer(p, x, 0.5)
        ),
        "of the last axis": Case(
            lambda: L.LayerNormalization(2),
            (IMAGE,),
            lambda p, x: standardized(x, 3, 1e-6) * p["/gamma"] + p["/beta"],
            lazy=lambda: L.LayerNormalization(),
        ),
        "of several axes": Case(
            lambda: L.LayerNormalization((3, 2)),
            (IMAGE,),
            lambda p, x: standardized(x, (2, 3), 1e-6) * p["/gamma"] + p["/beta"],
        ),
    },
    created="L.LayerNormalization(3)",
    edges=[
        "run(L.LayerNormalization(3), s(N, 3))",
        "run(L.LayerNormalization(), s(N, 3))",
    ],
    errors=[
        "L.LayerNormalization(-3) -> ValueError",
        "L.LayerNormalization(2**62) -> MemoryError",
    ],
    onnx="exported",
)


link(
    "RMSNormalization",
    cases=Case(
        lambda: L.RMSNormalization(6, 0.1),
        (X,),
        lambda p, x: x / numpy.sqrt((x**2).mean(1, keepdims=True) + 0.1) * p["/gamma"],
        lazy=lambda: L.RMSNormalization(None, 0.1),
    ),
)


link(
    "GroupNormalization",
    cases={
        "": Case(
            lambda: L.GroupNormalization(2, 4),
            (IMAGE,),
            lambda p, x: group(p, x, 2),
            lazy=lambda: L.GroupNormalization(2),
        ),
        "of one channel each": Case(
            lambda: L.GroupNormalization(4, 4, 0.5),
            (IMAGE,),
            lambda p, x: group(p, x, 4, 0.5),
        ),
    },
    nothing=[(0, 4, 3)],
    created="L.GroupNormalization(2, 4)",
    edges="run(L.GroupNormalization(2, 4), s(N, 4, 3))",
    errors=[
        "L.GroupNormalization(-2, 4)(f(2, 4)) -> ValueError",
        "L.GroupNormalization(2, -4) -> ValueError",
        "L.GroupNormalization(3, 4) -> GroupNormalization",
        "L.GroupNormalization(2.0, 4)(f(2, 4)) -> TypeError",
        "L.GroupNormalization(0, 4)(f(2, 4)) -> ValueError",
    ],
    onnx="exported",
)


link(
    "BatchNormalization",
    cases={
        "": Case(
            lambda: L.BatchNormalization(6),
            (X,),
            lambda p, x: standardized(x, 0, 2e-5) * p["/gamma"] + p["/beta"],
            lazy=lambda: L.BatchNormalization(axis=0),
        ),
        "of images without a scale": Case(
            lambda: L.BatchNormalization(4, use_gamma=False),
            (IMAGE,),
            lambda p, x: standardized(x, (0, 2, 3), 2e-5) + p["/beta"][:, None, None],
        ),
    },
    averages=True,
    created="L.BatchNormalization(3)",
    edges=[
        "run(L.BatchNormalization(3), s(N, 3))",
        "run(L.BatchNormalization(3), s(N, 3, 4, 4))",
    ],
    errors=[
        "L.BatchNormalization(0) -> BatchNormalization",
        "L.BatchNormalization(-3) -> ValueError",
        "L.BatchNormalization(2**64) -> MemoryError",
        "L.BatchNormalization(2**62) -> MemoryError",
        "L.BatchNormalization((2**32, 2**32)) -> MemoryError",
        "L.BatchNormalization(3.0) -> TypeError",
        "L.BatchNormalization(axis=(0, 0)) -> BatchNormalization",
    ],
    onnx="exported",
)


link(
    "BatchRenormalization",
    elsewhere="links/normalization/test_renormalizations.py",
    averages=True,
    created="L.BatchRenormalization(3)",
    edges="run(L.BatchRenormalization(3, rmax=2., dmax=1.), s(N, 3))",
    errors=[
        "L.BatchRenormalization(-3) -> ValueError",
        "L.BatchRenormalization(2**62) -> MemoryError",
    ],
    onnx="exported",
)


link(
    "DecorrelatedBatchNormalization",
    elsewhere="links/normalization/test_renormalizations.py",
    averages=True,
    half=False,
    created="L.DecorrelatedBatchNormalization(4, groups=2)",
    edges="run(L.DecorrelatedBatchNormalization(4, groups=2), s(8 * N, 4))",
    errors=[
        "L.DecorrelatedBatchNormalization(4, groups=0) -> ValueError",
        "L.DecorrelatedBatchNormalization(0, groups=2) -> DecorrelatedBatchNormalization",
        "L.DecorrelatedBatchNormalization(4, groups=3) -> ValueError",
        "L.DecorrelatedBatchNormalization(-4, groups=2) -> ValueError",
        "L.DecorrelatedBatchNormalization(4, groups=2**64) -> ValueError",
    ],
    onnx="exported",
)
