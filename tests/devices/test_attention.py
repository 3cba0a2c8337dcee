"""Attention by tiles on CUDA devices: sizes beyond a tile, against NumPy.

Rows of 8, 16, … 128 numbers of 16 bits are multiplied on tensor cores.
"""

from __future__ import annotations

import numpy
import pytest

import renga
import renga.functions as F
from renga import _core
from renga.backends import cuda

pytestmark = pytest.mark.skipif(not cuda.available, reason="no CUDA device")
gpu = renga.get_device("@cupy:0") if cuda.available else None
# Weights and results of 16 bits are rounded to 11.
on_both_units = pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 5e-6), ("float16", 3e-3)]
)


def operands(n, heads, queries, keys, depth, width, dtype="float32"):
    rng = numpy.random.RandomState(0)
    shapes = [(queries, depth), (keys, depth), (keys, width), (queries, width)]
    return [rng.standard_normal((n, heads, *s)).astype(dtype) for s in shapes]


def expected(q, k, v, gy, mask=0.0, is_causal=False):
    """The result and the gradients of q, k and v in float64."""
    q, k, v, gy = (x.astype("d") for x in (q, k, v, gy))
    scale = 1 / max(q.shape[3], 1) ** 0.5
    scores = q @ k.swapaxes(2, 3) * scale + mask
    if is_causal:
        scores += numpy.where(numpy.tri(*scores.shape[2:]) > 0, 0, -numpy.inf)
    top = scores.max(3, keepdims=True, initial=-1e300)
    p = numpy.exp(scores - top)
    p /= numpy.maximum(p.sum(3, keepdims=True), 1e-300)
    gp = gy @ v.swapaxes(2, 3)
    g = p * (gp - (p * gp).sum(3, keepdims=True)) * scale
    return p @ v, g @ k, g.swapaxes(2, 3) @ q, p.swapaxes(2, 3) @ gy


def computed(q, k, v, gy, device=gpu, **options):
    variables = [renga.Variable(device.send(x)) for x in (q, k, v)]
    y = _core.ops.scaled_dot_product_attention(*variables, **options)
    y.grad = device.send(gy)
    y.backward()
    return [cuda.to_cpu(x) for x in (y.array, *(v.grad for v in variables))]


def assert_close(actual, wanted, tolerance):
    for name, y, x in zip(("y", "gq", "gk", "gv"), actual, wanted):
        assert y.shape == x.shape
        numpy.testing.assert_allclose(y, x, rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(
    "sizes",
    [
        (1, 2, 130, 150, 20, 70),
        (2, 1, 65, 64, 65, 3),
        (1, 1, 3, 200, 130, 200),  # more than one block has columns of
        (1, 1, 150, 3, 1, 1),
    ],
)
def test_sizes(sizes, is_causal):
    given = operands(*sizes)
    actual = computed(*given, is_causal=is_causal)
    assert_close(actual, expected(*given, is_causal=is_causal), 5e-6)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(
    "sizes",
    [
        (2, 2, 130, 150, 16, 24),
        (1, 2, 150, 130, 64, 40),
        (1, 1, 40, 140, 72, 128),  # causal keys of the second tile are read by no query
        (1, 1, 70, 80, 20, 24),  # rows that are no vectors of 16 bytes
        (1, 1, 70, 80, 16, 136),  # rows too long for shared memory
    ],
)
def test_rows_of_16_bits(sizes, is_causal):
    given = operands(*sizes, "float16")
    actual = computed(*given, is_causal=is_causal)
    assert all(x.dtype == "float16" for x in actual)
    assert_close(actual, expected(*given, is_causal=is_causal), 3e-3)


def test_bfloat16():
    given = operands(1, 2, 70, 150, 32, 32)
    with renga.using_config("dtype", renga.mixed_bfloat16):
        actual = computed(*given, is_causal=True)
    assert_close(actual, expected(*given, is_causal=True), 2e-2)


@pytest.mark.parametrize("shape", [(70, 90), (2, 1, 70, 90), (3, 1, 90), (1, 1)])
@pytest.mark.parametrize("is_bool", [False, True])
@on_both_units
def test_masks(shape, is_bool, dtype, tolerance):
    given = operands(2, 3, 70, 90, 8, 8, dtype)
    mask = numpy.random.RandomState(1).standard_normal(shape).astype("f")
    added = numpy.where(mask > 0, 0, -numpy.inf) if is_bool else mask
    mask = mask > 0 if is_bool else mask
    for there in (gpu.send(mask), mask):  # one on the host is copied
        there = renga.Variable(there, requires_grad=False)
        actual = computed(*given, attn_mask=there)
        assert_close(actual, expected(*given, added), tolerance)
    if not is_bool:
        with pytest.raises(ValueError, match="expected arrays on one device"):
            computed(*given, attn_mask=renga.Variable(mask))


@on_both_units
def test_queries_without_keys_get_zero(dtype, tolerance):
    given = operands(1, 1, 70, 70, 8, 8, dtype)
    mask = numpy.ones((70, 70), bool)
    mask[5] = mask[69] = False
    sent = renga.Variable(gpu.send(mask), requires_grad=False)
    actual = computed(*given, attn_mask=sent)
    assert not actual[0][0, 0, [5, 69]].any() and not actual[1][0, 0, [5, 69]].any()
    assert_close(actual, expected(*given, numpy.where(mask, 0, -numpy.inf)), tolerance)


@on_both_units
def test_log_sums_of_queries_without_keys(dtype, tolerance):
    """Blocks of keys are joined by their weights: one that is not read has none."""
    q, k, v, _ = (gpu.send(x) for x in operands(1, 1, 70, 70, 8, 8, dtype))
    mask = numpy.ones((1, 1, 70, 70), bool)
    mask[0, 0, 7] = False
    attention = _core.attention.Attention(
        q, k, v, gpu.send(mask), scale=8**-0.5, is_causal=False, dropout_p=0, seed=0
    )
    _, log_sums = _core.attention.attend_to_block(attention)
    scores = cuda.to_cpu(q) @ cuda.to_cpu(k).swapaxes(2, 3) / 8**0.5
    wanted = numpy.log(numpy.exp(scores.astype("d")).sum(3))
    wanted[0, 0, 7] = -numpy.inf
    numpy.testing.assert_allclose(cuda.to_cpu(log_sums), wanted, rtol=0, atol=tolerance)


@pytest.mark.parametrize("zero", range(6))
@on_both_units
def test_empty(zero, dtype, tolerance):
    sizes = [2, 2, 3, 4, 8, 16]
    sizes[zero] = 0
    given = operands(*sizes, dtype)
    assert_close(computed(*given), expected(*given), tolerance)


@pytest.mark.parametrize("depth", [16, 128])
@on_both_units
def test_dropout_is_that_of_the_cpu(depth, dtype, tolerance):
    given = operands(1, 2, 70, 150, depth, 8, dtype)
    options = {"dropout_p": 0.3, "seed": 77}
    there = renga.get_device("@numpy")
    wanted = computed(*(x.astype("f") for x in given), device=there, **options)
    assert_close(computed(*given, **options), wanted, tolerance)
    assert abs(wanted[0] - expected(*given)[0]).max() > 0.1


@on_both_units
def test_heads_may_be_views(dtype, tolerance):
    q, k, v, gy = operands(2, 3, 70, 70, 8, 8, dtype)
    rows = [numpy.ascontiguousarray(x.swapaxes(1, 2)) for x in (q, k, v)]
    variables = [renga.Variable(gpu.send(x)) for x in rows]
    y = _core.ops.scaled_dot_product_attention(
        *(F.swapaxes(x, 1, 2) for x in variables)
    )
    y.grad = gpu.send(gy)
    y.backward()
    wanted = expected(q, k, v, gy)
    grads = [cuda.to_cpu(x.grad).swapaxes(1, 2) for x in variables]
    assert_close([cuda.to_cpu(y.array), *grads], wanted, tolerance)
