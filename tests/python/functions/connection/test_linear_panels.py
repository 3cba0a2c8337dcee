"""Linear maps of some tens of rows keep panels of weights that are used often."""

from __future__ import annotations

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import _core


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, "f")


def hold(link: L.Linear, x: np.ndarray, W: np.ndarray) -> np.ndarray:
    """The link computes x W^T + b."""
    y = link(renga.Variable(x)).array
    expected = x.astype("d") @ W.astype("d").T + link.b.array
    np.testing.assert_allclose(y, expected, rtol=0, atol=2e-4)
    return y


def memory() -> int:
    return _core.memory_stats("cpu")["in_use"]


# Edges of vectors, panels and parts of the depth, and of what is multiplied by panels.
@pytest.mark.parametrize("rows", [1, 5, 19, 20, 25, 37, 128, 129])
@pytest.mark.parametrize("size", [(128, 128), (97, 300), (33, 1025), (600, 31)])
def test_each_use_has_the_same_bits(rows: int, size: tuple[int, int]) -> None:
    link = L.Linear(size[1], size[0], initialW=numbers(*size))
    W, x = numbers(*size), numbers(rows, size[1], seed=1)
    first = hold(link, x, W)
    for _ in range(6):
        assert np.array_equal(link(renga.Variable(x)).array, first)
    # The result is the product of the same arrays, which no cache belongs to.
    link.b.array[...] = 0
    product = F.matmul(renga.Variable(x), renga.Variable(W), transb=True).array
    assert np.array_equal(link(renga.Variable(x)).array, product)


@pytest.mark.parametrize("train", [False, True])
def test_weights_that_were_written_to_are_packed_again(train: bool) -> None:
    link = L.Linear(200, 100, initialW=numbers(100, 200))
    x = numbers(24, 200, seed=1)
    with renga.using_config("enable_backprop", train):
        for step in range(3):
            for _ in range(6):
                hold(link, x, numbers(100, 200) + np.float32(step))
            link.W.array[...] += 1


def test_a_view_that_is_kept_is_seen() -> None:
    link = L.Linear(200, 100, initialW=numbers(100, 200))
    view, x = link.W.array, numbers(24, 200, seed=1)
    with renga.no_backprop_mode():
        for step in range(4):
            hold(link, x, numbers(100, 200) + np.float32(step))
            view += 1


def test_each_step_of_training_uses_the_updated_weights() -> None:
    link = L.Linear(200, 100, initialW=numbers(100, 200))
    optimizer = renga.optimizers.SGD(0.01).setup(link)
    x, W, b = numbers(24, 200, seed=1), numbers(100, 200).astype("d"), np.zeros(100)
    for _ in range(4):
        link.cleargrads()
        loss = sum(F.sum(link(renga.Variable(x)) ** 2) for _ in range(6)) * (1 / 512)
        loss.backward()
        optimizer.update()
        gy = 12 * (x.astype("d") @ W.T + b) / 512
        W, b = W - 0.01 * gy.T @ x.astype("d"), b - 0.01 * gy.sum(0)
    np.testing.assert_allclose(link.W.array, W, rtol=0, atol=1e-4)


def test_panels_are_freed_when_the_weights_are_exposed() -> None:
    link = L.Linear(500, 400, initialW=numbers(400, 500))
    x = renga.Variable(numbers(24, 500, seed=1))
    with renga.no_backprop_mode():
        link(x)
        before = memory()
        for _ in range(3):
            link(x)
        assert memory() - before >= 400 * 500 * 4
        assert link.W.array is not None
        assert memory() == before


def backward(link: L.Linear, x: np.ndarray, gy: np.ndarray, uses: int) -> np.ndarray:
    """The gradient of the input, which is the same in each of so many uses."""
    inputs = [renga.Variable(x) for _ in range(uses)]
    outputs = [link(one) for one in inputs]
    link.cleargrads()
    sum(F.sum(y * gy) for y in outputs).backward()
    for one in inputs:
        assert np.array_equal(one.grad, inputs[0].grad)
    return inputs[0].grad


@pytest.mark.parametrize("rows", [20, 25, 48])
@pytest.mark.parametrize("size", [(600, 300), (257, 290), (31, 4000), (3000, 65)])
def test_gradients_of_inputs_have_the_same_bits_in_each_use(
    rows: int, size: tuple[int, int]
) -> None:
    link = L.Linear(size[1], size[0], initialW=numbers(*size))
    x, gy = numbers(rows, size[1], seed=1), numbers(rows, size[0], seed=2)
    for step in range(3):
        W = numbers(*size).astype("d") + step
        gx = backward(link, x, gy, 20)
        np.testing.assert_allclose(gx, gy.astype("d") @ W, rtol=0, atol=2e-3)
        link.W.array[...] += 1


@pytest.mark.parametrize(("uses", "packings"), [(8, 1), (20, 2)])
def test_panels_for_gradients_of_inputs_are_kept_if_used_often(
    uses: int, packings: int
) -> None:
    link = L.Linear(500, 400, initialW=numbers(400, 500))
    x, gy = numbers(24, 500, seed=1), numbers(24, 400, seed=2)
    for _ in range(2):
        backward(link, x, gy, uses)
        link.W.array[...] += 1
    before, bytes_of_weights = memory(), 400 * 500 * 4
    backward(link, x, gy, uses)
    kept = memory() - before
    assert packings <= kept / bytes_of_weights < packings + 0.5
