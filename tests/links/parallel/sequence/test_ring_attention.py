"""Ring attention against the attention of one rank."""

import functools

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import _core
from renga.distributed.functions import (
    gather_sequence,
    ring_attention,
    scatter_sequence,
)
from renga.utils.type_check import InvalidType
from tests.links.parallel.differentiate import array


def differentiate(function, xs, gy, weights):
    """The result, and gradients of both orders."""
    xs = [renga.Variable(x) for x in xs]
    y = function(*xs)
    firsts = renga.grad([y], xs, [renga.Variable(gy)])
    again = function(*xs)
    gxs = renga.grad([again], xs, [renga.Variable(gy)], enable_double_backprop=True)
    loss = sum(F.sum(F.square(g) * w) for g, w in zip(gxs, weights))
    found = [y, *firsts, *gxs, *renga.grad([loss], xs)]
    return [x.array for x in found]


MASKS = {
    "none": lambda length, keys: None,
    "pairs": lambda length, keys: (
        np.random.RandomState(0).uniform(size=(2, 1, length, keys)) < 0.6
    ),
    "added": lambda length, keys: array(9, 3, length, 1),
    "keys": lambda length, keys: np.arange(keys) % 3 != 1,
}


@pytest.mark.parametrize(("dtype", "bound"), [("d", 1e-12), ("f", 5e-6)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("length", "keys"), [(7, 7), (2, 2), (9, 5), (70, 70)])
def test_values_and_gradients(some_ranks, length, keys, causal, dtype, bound):
    shapes = [(2, 3, length, 4), (2, 3, keys, 4), (2, 3, keys, 5), (2, 3, length, 5)]
    *xs, gy = (array(i, *s).astype(dtype) for i, s in enumerate(shapes))
    weights = [array(5 + i, *x.shape).astype(dtype) for i, x in enumerate(xs)]
    masks = {name: make(length, keys) for name, make in MASKS.items()}

    def on_rank(comm):
        own = slice(comm.rank, None, comm.size)
        own_xs, own_weights = ([x[:, :, own] for x in each] for each in (xs, weights))

        def attend(mask, *xs):
            return ring_attention(comm, *xs, attn_mask=mask, is_causal=causal)

        return [
            differentiate(
                functools.partial(attend, mask), own_xs, gy[:, :, own], own_weights
            )
            for mask in masks.values()
        ]

    def attend(mask, *xs):
        return F.scaled_dot_product_attention(*xs, attn_mask=mask, is_causal=causal)

    for (name, mask), *results in zip(masks.items(), *some_ranks(on_rank)):
        expected = differentiate(functools.partial(attend, mask), xs, gy, weights)
        for i, wanted in enumerate(expected):
            whole = np.empty_like(wanted)
            for rank, found in enumerate(results):
                assert found[i].dtype == wanted.dtype
                whole[:, :, rank :: len(results)] = found[i]
            bound_here, what = bound * max(1, abs(wanted).max()), f"mask {name}, {i}"
            np.testing.assert_allclose(whole, wanted, 0, bound_here, True, what)


def test_dropout(ranks):
    """The gradient belongs to the zeros that the result was computed with."""
    q, k, v = (array(i, 1, 2, 9, 4) for i in range(3))

    def on_rank(comm):
        own = slice(comm.rank, None, comm.size)
        v_own = renga.Variable(v[:, :, own])
        y = ring_attention(comm, q[:, :, own], k[:, :, own], v_own, dropout_p=0.5)
        gy = y.array.copy()  # any array of the shape
        (gv,) = renga.grad([y], [v_own], [renga.Variable(gy)])
        again = ring_attention(comm, q[:, :, own], k[:, :, own], v_own, dropout_p=0.5)
        with pytest.raises(RuntimeError, match="expected no dropout"):
            renga.grad([again], [v_own], [renga.Variable(gy)], None, False, False, True)
        with renga.using_config("train", False):
            kept = ring_attention(comm, q[:, :, own], k[:, :, own], v_own, None, 0.5)
        return y.array, gv.array, kept.array, again.array

    results = ranks(on_rank)
    y, gv, kept, again = (
        [found[i] for found in results] for i in range(len(results[0]))
    )
    # y is linear in v: <gy, y> = <gv, v>.
    left = sum(np.vdot(a, a) for a in y)
    right = sum(np.vdot(g, v[:, :, rank :: len(results)]) for rank, g in enumerate(gv))
    np.testing.assert_allclose(left, right, rtol=1e-10)
    assert all(not np.allclose(a, b) for a, b in zip(y, kept))
    assert all(not np.allclose(a, b) for a, b in zip(y, again))


def test_blocks_of_keys():
    """The kernels of one block, whose first queries read no key."""
    q, k, v = (array(i, 1, 1, 5, 8).astype("f") for i in range(3))
    mask = np.zeros((1, 1, 5, 5), bool)
    mask[:, :, 2:, :3] = True
    options = mask, 0.5, False, 0.0, 0
    attention = _core.attention.Attention(q, k, v, *options)
    y, log_sums = _core.attention.attend_to_block(attention)
    assert np.isneginf(log_sums[..., :2]).all() and not y[:, :, :2].any()
    scores = 0.5 * q[0, 0, 2:].astype("d") @ k[0, 0, :3].T
    np.testing.assert_allclose(
        log_sums[0, 0, 2:], np.log(np.exp(scores).sum(1)), rtol=1e-5
    )
    gradients = _core.attention.block_gradients(attention, y, log_sums, y)
    assert all(np.isfinite(g).all() for g in gradients)
    assert not gradients[0][:, :, :2].any() and not gradients[1][:, :, 3:].any()


@pytest.mark.parametrize("length", [1, 6, 7])
def test_tokens(ranks, length):
    x, weight = array(1, 2, length, 3), array(2, 2, length, 3)

    def on_rank(comm):
        whole = renga.Variable(x)
        own = scatter_sequence(comm, whole)
        np.testing.assert_array_equal(own.array, x[:, comm.rank :: comm.size])
        np.testing.assert_array_equal(own.array, scatter_sequence(comm, x))
        y = gather_sequence(comm, F.square(own))
        np.testing.assert_array_equal(y.array, x**2)
        F.sum(weight * y).backward()
        np.testing.assert_allclose(whole.grad, 2 * weight * x, rtol=1e-12)
        return True

    assert all(ranks(on_rank))


def test_errors(ranks):
    def on_rank(comm):
        x = np.zeros((1, 2, 3, 4), "f")
        with pytest.raises(InvalidType, match="expected query of 4 axes"):
            ring_attention(comm, x[0], x, x)
        with pytest.raises(ValueError, match="a mask that requires no gradient"):
            ring_attention(comm, x, x, x, renga.Variable(np.zeros((3, 3), "f")))
        with pytest.raises(InvalidType, match=r"scatter_sequence: expected \(N, L"):
            scatter_sequence(comm, x[0, 0, 0])
        if comm.size == 1:
            return True
        # The last rank has the most.
        own = x[:, :, : 1 + (comm.rank == comm.size - 1)]
        with pytest.raises(InvalidType, match="round-robin over the ranks, got"):
            ring_attention(comm, own, own, own)
        with pytest.raises(InvalidType, match="distributed round-robin, got"):
            gather_sequence(comm, own[0].transpose(0, 1, 2))
        return True

    assert all(ranks(on_rank))
