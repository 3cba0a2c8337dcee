"""Attention in tiles against the formula in float64."""

import numpy
import pytest

import renga
import renga.functions as F
from renga import _core, memory
from renga.utils.type_check import InvalidType
from tests.threads import on_threads

rng = numpy.random.default_rng(0)


def softmax(scores):
    top = numpy.maximum(scores.max(-1, keepdims=True), -1e30)
    terms = numpy.exp(scores - top)
    total = terms.sum(-1, keepdims=True)
    return terms / numpy.where(total == 0, 1, total)


def attention(q, k, v, gy, mask=None, causal=False, scale=None):
    """The result and the gradients of q, k and v, by their formulas in float64."""
    q, k, v, gy = (x.astype("d") for x in (q, k, v, gy))
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q @ k.swapaxes(-1, -2) * scale
    if causal:
        scores = numpy.where(numpy.tri(*scores.shape[-2:]) > 0, scores, -numpy.inf)
    if mask is not None and mask.dtype == bool:
        scores = numpy.where(mask, scores, -numpy.inf)
    elif mask is not None:
        scores = scores + mask
    p = softmax(scores)
    gp = gy @ v.swapaxes(-1, -2)
    gs = p * (gp - (p * gp).sum(-1, keepdims=True)) * scale
    return p @ v, gs @ k, gs.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ gy


def draw(dtype, n, h, length, keys, depth, width):
    """q, k, v and gy."""
    shapes = [
        (n, h, length, depth),
        (n, h, keys, depth),
        (n, h, keys, width),
        (n, h, length, width),
    ]
    return [rng.normal(size=s).astype(dtype) for s in shapes]


def differentiate(q, k, v, gy, **options):
    xs = [renga.Variable(x) for x in (q, k, v)]
    y = F.scaled_dot_product_attention(*xs, **options)
    return [y.array, *(g.array for g in renga.grad([y], xs, [renga.Variable(gy)]))]


def largest_error(found, expected):
    """Relative to the largest number of each array."""
    return max(
        abs(y - want).max(initial=0) / max(1, abs(want).max(initial=0))
        for y, want in zip(found, expected)
    )


# Less than a tile, the parts of several, one query, queries without keys at the end.
SIZES = [(2, 3, 5, 7, 4, 6), (1, 2, 130, 300, 33, 64), (3, 1, 1, 520, 64, 8)]
SIZES += [(1, 1, 3, 4, 0, 5)]  # scores of nothing
MASKS = {
    "none": lambda n, h, length, keys: None,
    "keys": lambda n, h, length, keys: rng.random((n, 1, 1, keys)) < 0.6,
    "pairs": lambda n, h, length, keys: rng.random((length, keys)) < 0.6,
    "added": lambda n, h, length, keys: rng.normal(size=(h, length, 1)),
}


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("dtype", "bound"), [("f", 5e-6), ("e", 2e-3), ("d", 1e-12)])
def test_formula(sizes, mask, causal, dtype, bound):
    arrays = draw(dtype, *sizes)
    mask = MASKS[mask](*sizes[:4])
    expected = attention(*arrays, mask, causal, 0.3)
    found = differentiate(*arrays, attn_mask=mask, is_causal=causal, scale=0.3)
    assert {y.dtype.char for y in found} == {dtype}
    assert largest_error(found, expected) < bound


@pytest.mark.parametrize("causal", [False, True])
def test_bfloat16_products(causal):
    arrays = draw("f", 1, 2, 130, 300, 64, 40)
    expected = attention(*arrays, None, causal)
    with renga.using_config("compute_precision", "medium"):
        found = differentiate(*arrays, is_causal=causal)
    assert 1e-7 < largest_error(found, expected) < 1e-2


def test_bfloat16_activations():
    arrays = draw("f", 1, 2, 70, 90, 32, 32)
    with renga.using_config("dtype", renga.mixed_bfloat16):
        found = differentiate(*arrays)
    assert largest_error(found, attention(*arrays)) < 2e-2


def test_a_query_without_keys_gets_zeros():
    q, k, v, gy = draw("f", 1, 1, 3, 4, 8, 8)
    mask = numpy.array([[True] * 4, [False] * 4, [True] * 4])
    y, gq, *others = differentiate(q, k, v, gy, attn_mask=mask)
    assert not y[:, :, 1].any() and not gq[:, :, 1].any()
    assert all(numpy.isfinite(x).all() for x in (y, gq, *others))


def test_heads_that_are_views_of_a_projection():
    wide = renga.Variable(rng.normal(size=(2, 70, 3 * 4 * 8)).astype("f"))
    parts = F.split_axis(wide, 3, 2)
    heads = [F.transpose(F.reshape(x, (2, 70, 4, 8)), (0, 2, 1, 3)) for x in parts]
    y = F.scaled_dot_product_attention(*heads)
    gy = rng.normal(size=y.shape).astype("f")
    expected = attention(*(x.array for x in heads), gy)
    numpy.testing.assert_allclose(y.array, expected[0], 1e-4, 1e-5)
    # The result, too, is a view of an array in which heads adjoin.
    assert y.array.transpose(0, 2, 1, 3).flags.c_contiguous
    (g,) = renga.grad([y], [wide], [renga.Variable(gy)])
    together = [x.transpose(0, 2, 1, 3).reshape(2, 70, 32) for x in expected[1:]]
    numpy.testing.assert_allclose(g.array, numpy.concatenate(together, 2), 1e-4, 1e-5)


@pytest.mark.parametrize("axes", [2, 3])
def test_without_samples_and_heads(axes):
    q, k, v, _ = (x[(0,) * (4 - axes)] for x in draw("d", 1, 2, 5, 6, 4, 3))
    y = F.scaled_dot_product_attention(q, k, v)
    scores = q @ k.swapaxes(-1, -2) / 2
    numpy.testing.assert_allclose(y.array, softmax(scores) @ v, 1e-12)


def test_dropout_in_training():
    # Values that tell the weights.
    q, k, _, _ = draw("f", 2, 2, 40, 100, 4, 1)
    v = numpy.broadcast_to(numpy.eye(100, dtype="f"), (2, 2, 100, 100))
    options = {"dropout_p": 0.25}
    with renga.using_config("train", False):
        p = F.scaled_dot_product_attention(q, k, v, **options).array
    numpy.random.seed(1)
    y = F.scaled_dot_product_attention(q, k, v, **options).array
    kept = y != 0
    assert abs(kept.mean() - 0.75) < 0.02
    numpy.testing.assert_allclose(y[kept], p[kept] / 0.75, 1e-5)
    numpy.random.seed(1)
    again = F.scaled_dot_product_attention(q, k, v, **options).array
    numpy.testing.assert_array_equal(again, y)
    # The backward pass, the tiled and the composed one, drops the same weights.
    seed = 77
    for create_graph in (False, True):
        x = renga.Variable(v.copy())
        y = _core.ops.scaled_dot_product_attention(
            q, k, x, None, 0.25, False, None, seed
        )
        (g,) = renga.grad([y], [x], enable_double_backprop=create_graph)
        expected = y.array.sum(2)[..., None].repeat(100, 3)
        numpy.testing.assert_allclose(g.array, expected, 1e-4, 1e-5)


@pytest.mark.parametrize("sizes", [(1, 1, 300, 1200, 16, 16), (2, 2, 130, 90, 8, 40)])
def test_the_same_bits_on_any_number_of_threads(sizes):
    arrays = draw("f", *sizes)
    results = on_threads(lambda: differentiate(*arrays, is_causal=True), (1, 2, 3, 5))
    for others in zip(*results):
        for other in others[1:]:
            numpy.testing.assert_array_equal(others[0], other)


def test_the_scores_are_not_stored():
    n = 2048
    arrays = draw("f", 1, 1, n, n, 8, 8)
    memory.empty_cache()
    before = memory.stats()["peak"]
    differentiate(*arrays)
    assert memory.stats()["peak"] - before < n * n * 4 / 2


def test_gradient_of_a_mask():
    q, k, v, gy = draw("d", 2, 2, 3, 5, 4, 4)
    mask = renga.Variable(rng.normal(size=(2, 1, 5)))

    def loss(m):
        return (attention(q, k, v, gy, m)[0] * gy).sum()

    y = F.scaled_dot_product_attention(q, k, v, mask)
    F.sum(y * gy).backward()
    for index in numpy.ndindex(2, 1, 5):
        step = numpy.zeros((2, 1, 5))
        step[index] = 1e-6
        numeric = (loss(mask.array + step) - loss(mask.array - step)) / 2e-6
        assert abs(mask.grad[index] - numeric) < 1e-7


x = numpy.ones((1, 2, 3, 4), "f")
FAULTS = [
    (lambda: F.scaled_dot_product_attention(x, x[..., :3], x), InvalidType),
    (lambda: F.scaled_dot_product_attention(x, x[:, :, :2], x), InvalidType),
    (lambda: F.scaled_dot_product_attention(x, x[:, :1], x), InvalidType),
    (lambda: F.scaled_dot_product_attention(x, x[0], x), InvalidType),
    (lambda: F.scaled_dot_product_attention(x, x, x.astype("d")), InvalidType),
    (lambda: F.scaled_dot_product_attention(x, x, x, x[..., :2]), InvalidType),
    (lambda: F.scaled_dot_product_attention(x, x, x, x.astype("i")), InvalidType),
    (lambda: F.scaled_dot_product_attention(x, x, x, dropout_p=1.0), ValueError),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error, match="scaled_dot_product_attention: expected"):
        wrong()
