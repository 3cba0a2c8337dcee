"""Multi-head attention against NumPy, and generation by cache against the whole."""

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from tests.catalogue.links.attention import MEMORY, X, rng, rotated


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("steps", [(1,) * 7, (3, 1, 2, 1)])
def test_generation_by_cache(rotary, steps):
    x = rng.normal(size=(2, 7, 8)).astype("f")
    blocks = [L.TransformerBlock(8, 2, rotary=rotary) for _ in range(2)]
    caches = [L.KeyValueCache() for _ in blocks]
    with renga.using_config("train", False), renga.no_backprop_mode():
        whole, parts = x, []
        for block in blocks:
            whole = block(whole, is_causal=True)
        for part in numpy.split(x, numpy.cumsum(steps)[:-1], 1):
            for block, cache in zip(blocks, caches):
                part = block(part, is_causal=True, cache=cache)
            parts.append(part.array)
    assert [cache.length for cache in caches] == [7, 7]
    found = numpy.concatenate(parts, 1)
    numpy.testing.assert_allclose(found, whole.array, 1e-4, 1e-5)


def test_a_cache_with_a_mask_of_padding():
    link = L.MultiHeadAttention(6, 2)
    x = X.astype("f")
    read = numpy.array([[0, 1, 1, 1, 1], [1, 1, 1, 1, 1]], bool)[:, None, None]
    with renga.no_backprop_mode():
        whole = link(x, attn_mask=read, is_causal=True).array[:, 2:]
        cache = L.KeyValueCache()
        link(x[:, :2], attn_mask=read[..., :2], is_causal=True, cache=cache)
        rest = link(x[:, 2:], attn_mask=read, is_causal=True, cache=cache)
    numpy.testing.assert_allclose(rest.array, whole, 1e-4, 1e-5)


def test_a_block_is_two_residual_steps():
    block = L.TransformerBlock(6, 2, 10, activation=F.tanh)
    x = renga.Variable(X.astype("f"))
    h = x + block.attention(block.norm1(x))
    inner = F.tanh(block.up(block.norm2(h), n_batch_axes=2))
    y = h + block.down(inner, n_batch_axes=2)
    numpy.testing.assert_allclose(block(x).array, y.array, 1e-5, 1e-6)
    assert block.up.W.shape == (10, 6)


def test_rotations():
    x = rng.normal(size=(2, 3, 5, 6))
    y = F.rotary_embedding(x).array
    numpy.testing.assert_allclose(y, rotated(x), 1e-12)
    later = F.rotary_embedding(x[..., 2:, :], 2).array
    numpy.testing.assert_allclose(later, y[..., 2:, :], 1e-12)
    others = F.rotary_embedding(x[..., 1::2, :], 1, step=2).array
    numpy.testing.assert_allclose(others, y[..., 1::2, :], 1e-12)


def test_position_embedding():
    W, gy = renga.Variable(rng.normal(size=(6, 3))), rng.normal(size=(2, 3))
    y = F.position_embedding(W, numpy.zeros((5, 2)), 3)
    numpy.testing.assert_array_equal(y.array, W.array[3:5])
    y.grad = gy
    y.backward()
    numpy.testing.assert_array_equal(W.grad[3:5], gy)
    assert not W.grad[:3].any() and not W.grad[5:].any()
    for x, position in (((2, 4), 3), ((2,), 0), ((2, 3), -1)):
        with pytest.raises(renga.utils.type_check.InvalidType, match="at most 6 less"):
            F.position_embedding(W, numpy.zeros(x), position)


def test_faults():
    with pytest.raises(ValueError, match="divide embed_dim"):
        L.MultiHeadAttention(6, 4)
    with pytest.raises(ValueError, match="a memory or a cache"):
        L.MultiHeadAttention(6, 2)(X, MEMORY, cache=L.KeyValueCache())
    with pytest.raises(renga.utils.type_check.InvalidType, match="even D"):
        F.rotary_embedding(X[..., :5])
    with pytest.raises(ValueError, match="positive base"):
        F.rotary_embedding(X, base=0)
    with pytest.raises(ValueError, match="below 2\\*\\*31"):
        F.rotary_embedding(X, 2**31)
    with pytest.raises(TypeError):
        F.rotary_embedding(X, base=1j)
    with pytest.raises(TypeError):
        F.rotary_embedding(X, 0.5)
