"""Attention by tiles on CUDA devices: sizes beyond a tile, against NumPy."""

from __future__ import annotations

import numpy
import pytest

import renga
import renga.functions as F
from renga import _core
from renga.backends import cuda

pytestmark = pytest.mark.skipif(not cuda.available, reason="no CUDA device")
gpu = renga.get_device("@cupy:0") if cuda.available else None


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


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 4e-3)])
def test_lower_precision(dtype, tolerance):
    given = operands(1, 2, 70, 80, 16, 24, dtype)
    actual = computed(*given)
    assert all(x.dtype == dtype for x in actual)
    assert_close(actual, expected(*given), tolerance)


@pytest.mark.parametrize("shape", [(70, 90), (2, 1, 70, 90), (3, 1, 90), (1, 1)])
@pytest.mark.parametrize("is_bool", [False, True])
def test_masks(shape, is_bool):
    given = operands(2, 3, 70, 90, 8, 8)
    mask = numpy.random.RandomState(1).standard_normal(shape).astype("f")
    added = numpy.where(mask > 0, 0, -numpy.inf) if is_bool else mask
    mask = mask > 0 if is_bool else mask
    for there in (gpu.send(mask), mask):  # one on the host is copied
        there = renga.Variable(there, requires_grad=False)
        actual = computed(*given, attn_mask=there)
        assert_close(actual, expected(*given, added), 5e-6)
    if not is_bool:
        with pytest.raises(ValueError, match="expected arrays on one device"):
            computed(*given, attn_mask=renga.Variable(mask))


def test_queries_without_keys_get_zero():
    given = operands(1, 1, 70, 70, 4, 4)
    mask = numpy.ones((70, 70), bool)
    mask[5] = mask[69] = False
    sent = renga.Variable(gpu.send(mask), requires_grad=False)
    actual = computed(*given, attn_mask=sent)
    assert not actual[0][0, 0, [5, 69]].any() and not actual[1][0, 0, [5, 69]].any()
    assert_close(actual, expected(*given, numpy.where(mask, 0, -numpy.inf)), 5e-6)


@pytest.mark.parametrize("zero", range(6))
def test_empty(zero):
    sizes = [2, 2, 3, 4, 5, 6]
    sizes[zero] = 0
    given = operands(*sizes)
    assert_close(computed(*given), expected(*given), 5e-6)


def test_dropout_is_that_of_the_cpu():
    given = operands(2, 2, 70, 150, 12, 10)
    options = {"dropout_p": 0.3, "seed": 77}
    wanted = computed(*given, device=renga.get_device("@numpy"), **options)
    assert_close(computed(*given, **options), wanted, 5e-6)
    assert abs(wanted[0] - expected(*given)[0]).max() > 0.1


def test_heads_may_be_views():
    q, k, v, gy = operands(2, 3, 70, 70, 8, 8)
    rows = [numpy.ascontiguousarray(x.swapaxes(1, 2)) for x in (q, k, v)]
    variables = [renga.Variable(gpu.send(x)) for x in rows]
    y = _core.ops.scaled_dot_product_attention(
        *(F.swapaxes(x, 1, 2) for x in variables)
    )
    y.grad = gpu.send(gy)
    y.backward()
    wanted = expected(q, k, v, gy)
    grads = [cuda.to_cpu(x.grad).swapaxes(1, 2) for x in variables]
    assert_close([cuda.to_cpu(y.array), *grads], wanted, 5e-6)
