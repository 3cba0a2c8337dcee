"""Copies of links that share their parameters' arrays.

Chainer 7.8.1 shares the place of an array, not only its memory: expected values are
its outcomes.
"""

import copy
import gc
import pickle

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L

X = np.array([[1.0, -2.0]], "f")


def test_an_assigned_array_is_that_of_all_copies():
    first = L.Linear(2, 3)
    second = first.copy()
    third = second.copy()
    second.W.array = np.full((3, 2), 0.5, "f")
    first.b.data = np.array([1, 2, 3], "f")
    expected = X @ np.full((2, 3), 0.5, "f") + [1, 2, 3]
    for link in (first, second, third):
        assert link.W.array is second.W.array
        np.testing.assert_array_equal(link(X).array, expected)


@pytest.mark.parametrize("used", [0, 1])
def test_parameters_that_get_their_shape_later(used):
    links = [L.Linear(None, 3)]
    links.append(links[0].copy())
    links[used](X)
    assert links[0].W.array is links[1].W.array
    assert links[1 - used].W.shape == (3, 2) and links[1 - used].W.is_initialized


def test_shared_heads_train_together():
    """Two copies, each with gradients of its own, and one array that both change."""
    body = L.Linear(None, 1, initialW=1)
    model = renga.ChainList(body, body.copy())
    optimizer = renga.optimizers.SGD(0.1).setup(model)
    optimizer.update(lambda: F.sum(model[0](X)) + 2 * F.sum(model[1](X)))
    # dW is X for the first and 2 X for the second; b has 1 and 2.
    np.testing.assert_allclose(model[0].W.array, 1 - 0.1 * 3 * X, rtol=1e-6)
    np.testing.assert_allclose(model[1].b.array, [-0.3], rtol=1e-6)
    assert model[0].W.array is model[1].W.array
    assert model[0].W.grad is not model[1].W.grad


def test_a_copied_parameter():
    param = renga.Parameter(np.zeros(2, "f"))
    copied = copy.copy(param)
    copied.array = np.ones(2, "f")
    assert param.array is copied.array
    copied.grad = np.ones(2, "f")
    assert param.grad is None


def test_what_loads_reaches_copies(tmp_path):
    renga.serializers.save_npz(tmp_path / "file", L.Linear(2, 3, initialW=4))
    link = L.Linear(None, 3)
    shared = link.copy()
    renga.serializers.load_npz(tmp_path / "file", shared)
    np.testing.assert_array_equal(link.W.array, np.full((3, 2), 4))


def test_deep_copies_and_pickles_are_independent():
    link = L.Linear(2, 3, initialW=1)
    shared = link.copy()
    both = pickle.loads(pickle.dumps((link, shared)))
    for other in (shared.copy("copy"), copy.deepcopy(link), *both):
        other.W.array = np.zeros((3, 2), "f")
        assert (link.W.array == 1).all() and (shared.W.array == 1).all()
        # A copy of the deep copy shares with that one alone.
        again = other.copy()
        again.W.array = np.full((3, 2), 7, "f")
        assert (other.W.array == 7).all() and (link.W.array == 1).all()


def test_deep_and_redrawn_copies_keep_the_name():
    link = L.Linear(2, 3)
    link.name = "link"
    names = [link.copy(mode).name for mode in ("share", "copy", "init")]
    assert names == [None, "link", "link"]


def test_copies_that_are_gone():
    link = L.Linear(2, 3)
    for _ in range(5):
        link.copy()
    gc.collect()
    kept = link.copy()
    assert len(link.W._copies.alive()) == 2
    kept.W.array = np.zeros((3, 2), "f")
    assert (link.W.array == 0).all()
