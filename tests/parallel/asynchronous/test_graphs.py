"""Graphs: their weights, and what mixing by them does to values."""

import numpy as np
import pytest

from renga.distributed.asynchronous import (
    Complete,
    ExponentialGraph,
    Hypercube,
    Ring,
    Torus,
    Weights,
)

GRAPHS = {
    "ring": Ring(),
    "torus": Torus(),
    "complete": Complete(),
    "hypercube": Hypercube(),
    "exponential": ExponentialGraph(one_peer=False),
    "one peer": ExponentialGraph(),
}


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6, 8, 12, 16])
@pytest.mark.parametrize("name", GRAPHS)
def test_weights_are_doubly_stochastic_and_mix_to_the_mean(name, size):
    graph = GRAPHS[name]
    if name == "hypercube" and size & (size - 1):
        with pytest.raises(ValueError, match=rf"expected 2\^k ranks, got {size}"):
            graph.weights(size)
        return
    x = np.random.RandomState(size).uniform(size=(size, 3))
    mean = x.mean(axis=0)
    for step in range(400):
        w = graph.weights(size, step)
        np.testing.assert_allclose(w.sum(axis=0), 1, rtol=0, atol=1e-12)
        np.testing.assert_allclose(w.sum(axis=1), 1, rtol=0, atol=1e-12)
        assert (w >= 0).all()
        x = w @ x
        np.testing.assert_allclose(x.mean(axis=0), mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(x, np.tile(mean, (size, 1)), rtol=0, atol=1e-6)


@pytest.mark.parametrize("size", [2, 4, 8, 64])
def test_the_one_peer_graph_is_exact_after_log2_steps(size):
    graph = ExponentialGraph()
    product = np.eye(size)
    for step in range(size.bit_length() - 1):
        w = graph.weights(size, step)
        assert (np.count_nonzero(w, axis=1) == 2).all()
        product = w @ product
    np.testing.assert_array_equal(product, 1 / size)


def test_neighbours():
    assert Ring().neighbours(0, 5) == [1, 4]
    assert Torus(2).neighbours(0, 6) == [1, 2, 3]
    assert Torus().neighbours(0, 16) == [1, 3, 4, 12]
    assert Hypercube().neighbours(5, 8) == [1, 4, 7]
    assert ExponentialGraph().neighbours(6, 8) == [0, 2, 7]
    assert Complete().neighbours(1, 3) == [0, 2]
    assert Complete().neighbours(0, 1) == []


def test_torus_of_numpy():
    """Along both axes of a grid of 3 by 4."""
    x = np.arange(12.0)
    grid = x.reshape(3, 4)
    rolled = [np.roll(grid, s, axis) for s in (1, -1) for axis in (0, 1)]
    expected = (grid + sum(rolled)) / 5
    mixed = Torus().weights(12) @ x
    np.testing.assert_allclose(mixed, expected.ravel(), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "w, message",
    [
        ([[1.0, 0.0]], "square matrix"),
        ([[1.5, 0.5], [-0.5, 0.5]], "without negative"),
        ([[0.5, 0.5], [0.4, 0.5]], "columns that sum to 1"),
    ],
)
def test_matrices_that_are_no_graph_are_refused(w, message):
    with pytest.raises(ValueError, match=message):
        Weights(w)


def test_a_matrix_of_another_size_is_refused():
    with pytest.raises(ValueError, match="expected 2 ranks, got 3"):
        Weights(np.eye(2)).weights(3)


def test_weights_cannot_be_written_to():
    """They are the same array for everybody."""
    with pytest.raises(ValueError, match="read-only"):
        Ring().weights(4)[0, 0] = 2


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: Torus(0), ValueError),
        (lambda: Torus(1.5), TypeError),
        (lambda: Weights("a"), TypeError),
        (lambda: Weights(None), TypeError),
        (lambda: Weights([[np.nan]]), ValueError),
        (lambda: Ring().weights(0), ValueError),
        (lambda: Complete().weights(2.0), TypeError),
        (lambda: ExponentialGraph().weights(8, -1), ValueError),
        (lambda: Ring().neighbours(-1, 3), ValueError),
        (lambda: Ring().neighbours(3, 3), ValueError),
    ],
)
def test_invalid_arguments_are_refused(call, error):
    with pytest.raises(error, match=": expected"):
        call()
