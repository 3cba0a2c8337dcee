"""Copies between orders of axes in memory, which go by tiles."""

from __future__ import annotations

import numpy
import pytest

import renga.functions as F
from renga import _core
from renga.backends import cuda

pytestmark = pytest.mark.skipif(not cuda.available, reason="no CUDA device")
CASES = [
    ((40, 70), (1, 0)),
    ((3, 33, 8), (0, 2, 1)),
    ((9, 2, 40, 5), (2, 1, 3, 0)),
    ((2, 16, 7, 9), (0, 2, 3, 1)),
    ((2, 7, 9, 16), (0, 3, 1, 2)),
    ((8, 7), (1, 0)),  # too few for tiles
    ((64, 1, 64), (2, 1, 0)),
]


@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "int64"])
@pytest.mark.parametrize(("shape", "axes"), CASES)
def test_transposes(shape, axes, dtype):
    x = numpy.random.RandomState(0).uniform(0, 2, shape).astype(dtype)
    y = F.transpose(cuda.to_gpu(x), axes)
    copied = _core.empty_variable(y.shape, y.dtype.name, "cuda:0")
    _core.copy_array(y, copied)
    numpy.testing.assert_array_equal(cuda.to_cpu(copied.array), x.transpose(axes))
    # And from there into memory of the first order.
    other = _core.copy_of(F.transpose(copied, numpy.argsort(axes).tolist()))
    numpy.testing.assert_array_equal(cuda.to_cpu(other.array), x)


def test_parts_and_reversed_axes():
    x = numpy.random.RandomState(0).standard_normal((50, 60)).astype("f")
    y = cuda.to_gpu(x)[3:, ::2].T
    target = cuda.to_gpu(numpy.zeros((30, 47), "f"))
    _core.copy_array(y, target)
    numpy.testing.assert_array_equal(cuda.to_cpu(target), x[3:, ::2].T)


@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "int64"])
@pytest.mark.parametrize("columns", [1, 3, 8])
def test_many_arrays_are_joined_by_few_launches(columns, dtype):
    rng = numpy.random.RandomState(0)
    xs = [rng.uniform(0, 2, (n % 4, 5, columns)).astype(dtype) for n in range(90)]
    sent = [cuda.to_gpu(x) for x in xs]
    y = cuda.to_cpu(F.concat(sent, 0).array)
    numpy.testing.assert_array_equal(y, numpy.concatenate(xs))
    turned = [x.swapaxes(0, 2) for x in xs]
    y = cuda.to_cpu(F.concat([F.swapaxes(x, 0, 2) for x in sent], 2).array)
    numpy.testing.assert_array_equal(y, numpy.concatenate(turned, 2))
    parts = F.stack([x[:2, ::2, -1:] for x in sent if len(x) > 1], 1).array
    wanted = [x[:2, ::2, -1:] for x in xs if len(x) > 1]
    numpy.testing.assert_array_equal(cuda.to_cpu(parts), numpy.stack(wanted, 1))


def test_sums_of_rows_with_equal_indices_keep_their_order():
    """Bit for bit those of a loop over rows."""
    rng = numpy.random.RandomState(0)
    ids = rng.randint(0, 6, 200)
    rows = rng.standard_normal((200, 5)).astype("f")
    W = numpy.zeros((9, 5), "f")
    table = _core.Variable(cuda.to_gpu(W), requires_grad=True)
    y = F.embed_id(cuda.to_gpu(ids), table)
    (gW,) = _core.grad([y], [table], [_core.Variable(cuda.to_gpu(rows))], [])
    for i, row in zip(ids, rows):
        W[i] += row
    numpy.testing.assert_array_equal(cuda.to_cpu(gW.array), W)
