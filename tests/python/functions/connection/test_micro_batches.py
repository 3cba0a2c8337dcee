"""Convolutions of batches in parts: packed weights are kept, gradients added in place.

Both save time only: the numbers are bit for bit those of parts whose weights are packed
anew and whose gradients NumPy adds up.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from tests.links.cases.algorithms import convolutions_by

LAYERS = {
    "3x3": lambda: L.Convolution2D(32, 64, 3, pad=1),
    "strided 4x4": lambda: L.Convolution2D(32, 64, 4, stride=2, pad=1),
    "strided 3x3": lambda: L.Convolution2D(32, 64, 3, stride=2, pad=1),
    "1x1": lambda: L.Convolution2D(32, 64, 1),
    "transposed": lambda: L.Deconvolution2D(32, 64, 3, pad=1),
    "depthwise": lambda: L.DepthwiseConvolution2D(32, 1, 3, pad=1),
}
RATE = np.float32(0.01)


@pytest.fixture(params=["auto", "winograd", "direct"], autouse=True)
def kernel(request):
    with convolutions_by(request.param):
        yield


def parts(size: int) -> np.ndarray:
    return np.random.RandomState(1).normal(size=(5, 4, 32, size, size)).astype("f")


def loss(layer: Any, x: np.ndarray) -> Any:
    return F.sum(F.square(F.cast(layer(F.cast(x, renga.config.dtype)), "float32")))


def gradients(layer: Any) -> list[np.ndarray]:
    return [p.grad for p in layer.params()]


@pytest.mark.parametrize("dtype", [np.float32, renga.mixed_bfloat16])
@pytest.mark.parametrize("size", [2, 4, 9])
@pytest.mark.parametrize("name", LAYERS)
def test_steps_have_the_bits_of_parts_alone(name, size, dtype):
    with renga.using_config("dtype", dtype):
        compare_steps(name, size)


def compare_steps(name: str, size: int) -> None:
    np.random.seed(0)
    fast = LAYERS[name]()
    loss(fast, parts(size)[0])
    slow = fast.copy("copy")
    # Whoever holds the arrays may write them at any time: nothing is kept.
    held = [p.array for p in slow.params()]
    for _ in range(3):
        fast.cleargrads()
        for x in parts(size):
            loss(fast, x).backward()
        sums = [np.zeros_like(W) for W in held]
        for x in parts(size):
            slow.cleargrads()
            loss(slow, x).backward()
            for total, term in zip(sums, gradients(slow)):
                total += term
        for got, expected in zip(gradients(fast), sums):
            np.testing.assert_array_equal(got, expected)
        for p in fast.params():
            p.array = p.array - RATE * p.grad
        for W, total in zip(held, sums):
            W -= RATE * total


def test_gradients_that_the_user_holds_stay():
    layer = LAYERS["3x3"]()
    layer.cleargrads()
    x = parts(4)
    loss(layer, x[0]).backward()
    held = [g.copy() for g in gradients(layer)]
    seen = gradients(layer)
    loss(layer, x[1]).backward()
    for before, after, copy, now in zip(seen, seen, held, gradients(layer)):
        np.testing.assert_array_equal(after, copy)
        assert now is not before


def test_a_gradient_that_is_the_arrays_own_is_added_too():
    x = renga.Parameter(np.ones(3, "f"))
    x.grad = np.full(3, 2, "f")
    y = F.reshape(x, (1, 3))
    y.grad = x.grad.reshape(1, 3)
    y.backward()
    np.testing.assert_array_equal(x.grad, np.full(3, 4, "f"))


def test_passes_forward_before_the_first_backward():
    layer = LAYERS["3x3"]()
    terms = []
    for x in parts(4):
        layer.cleargrads()
        loss(layer, x).backward()
        terms.append(gradients(layer))
    layer.cleargrads()
    for y in [loss(layer, x) for x in parts(4)]:
        y.backward()
    for got, *expected in zip(gradients(layer), *terms):
        np.testing.assert_array_equal(got, functools.reduce(np.add, expected))


def test_weights_that_are_used_twice_in_a_pass():
    layer = L.Convolution2D(32, 32, 3, pad=1)
    terms = []
    for x in parts(4)[:2]:
        layer.cleargrads()
        F.sum(F.square(layer(layer(x)))).backward()
        terms.append(gradients(layer))
    layer.cleargrads()
    for x in parts(4)[:2]:
        F.sum(F.square(layer(layer(x)))).backward()
    for got, first, second in zip(gradients(layer), *terms):
        np.testing.assert_array_equal(got, first + second)
