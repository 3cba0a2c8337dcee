"""Normalizations of samples and of groups, against NumPy."""

import numpy
import pytest

import renga
import renga.links as L
from tests.links.cases.link_check import Case, check

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


CASES = {
    "LayerNormalization": Case(
        lambda: L.LayerNormalization(6),
        (X,),
        layer,
        lazy=lambda: L.LayerNormalization(),
    ),
    "LayerNormalization with a large eps": Case(
        lambda: L.LayerNormalization(6, 0.5), (X,), lambda p, x: layer(p, x, 0.5)
    ),
    "LayerNormalization of the last axis": Case(
        lambda: L.LayerNormalization(2),
        (IMAGE,),
        lambda p, x: standardized(x, 3, 1e-6) * p["/gamma"] + p["/beta"],
        lazy=lambda: L.LayerNormalization(),
    ),
    "LayerNormalization of several axes": Case(
        lambda: L.LayerNormalization((3, 2)),
        (IMAGE,),
        lambda p, x: standardized(x, (2, 3), 1e-6) * p["/gamma"] + p["/beta"],
    ),
    "RMSNormalization": Case(
        lambda: L.RMSNormalization(6, 0.1),
        (X,),
        lambda p, x: x / numpy.sqrt((x**2).mean(1, keepdims=True) + 0.1) * p["/gamma"],
        lazy=lambda: L.RMSNormalization(None, 0.1),
    ),
    "GroupNormalization": Case(
        lambda: L.GroupNormalization(2, 4),
        (IMAGE,),
        lambda p, x: group(p, x, 2),
        lazy=lambda: L.GroupNormalization(2),
    ),
    "GroupNormalization of one channel each": Case(
        lambda: L.GroupNormalization(4, 4, 0.5),
        (IMAGE,),
        lambda p, x: group(p, x, 4, 0.5),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_link(name):
    check(CASES[name])


@pytest.mark.parametrize(
    "make",
    [
        lambda **initial: L.LayerNormalization(2, **initial),
        lambda **initial: L.GroupNormalization(1, 2, **initial),
    ],
)
def test_initial_values(make):
    assert make().gamma.array.tolist() == [1, 1]
    assert make().beta.array.tolist() == [0, 0]
    link = make(initial_gamma=numpy.array([2, 3]), initial_beta=4)
    assert link.gamma.array.tolist() == [2, 3]
    assert link.beta.array.tolist() == [4, 4]


def test_mixed_precision_keeps_scales_and_shifts_in_float32():
    with renga.using_config("dtype", renga.mixed16):
        link = L.GroupNormalization(2, 4)
        lazy = L.GroupNormalization(2)
        y = lazy(IMAGE.astype("e"))
    assert link.gamma.dtype == link.beta.dtype == lazy.beta.dtype == numpy.float32
    expected = standardized(IMAGE.reshape(2, 2, 12), 2, 1e-5).reshape(IMAGE.shape)
    numpy.testing.assert_allclose(y.array, expected, rtol=1e-2, atol=1e-2)


def test_groups_that_do_not_fit():
    with pytest.raises(ValueError, match="in 3 groups"):
        L.GroupNormalization(3)(IMAGE.astype("f"))
    with pytest.raises(ValueError, match=r"\(N, C"):
        L.GroupNormalization(3)(numpy.ones(3, "f"))
    with pytest.raises(renga.utils.type_check.InvalidType):
        L.LayerNormalization(6)(IMAGE.astype("f"))
