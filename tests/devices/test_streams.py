"""CuPy's current stream: what it has begun precedes what renga computes, and back."""

from __future__ import annotations

import ctypes
import gc
import pathlib
import sys

import numpy
import pytest

import renga.functions as F
import renga.links as L
from renga import _core
from renga.backends import cuda

if getattr(sys.modules.get("renga._cuda"), "__name__", "") != "renga._cuda_standin":
    pytest.skip(
        "needs the environment variable RENGA_CUDA_STANDIN", allow_module_level=True
    )
standin = ctypes.CDLL(str(pathlib.Path(_core.__file__).parent / "libcuda_standin.so"))
cupy = cuda.cupy
X = numpy.random.RandomState(0).standard_normal((6, 5)).astype("f")


@pytest.fixture(params=range(6), autouse=True)
def seed(request):
    """Streams run late in another order with every seed."""
    standin.cuda_standin_seed(ctypes.c_uint64(request.param))


def test_renga_follows_work_of_cupy():
    x = cupy.array(X)
    cupy.cuda.Stream.null.synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        y = x * 2
        z = F.exp(y)
    outside = F.tanh(z)
    numpy.testing.assert_allclose(cuda.to_cpu(z.array), numpy.exp(2 * X), rtol=1e-5)
    expected = numpy.tanh(numpy.exp(2 * X))
    numpy.testing.assert_allclose(cuda.to_cpu(outside.array), expected, rtol=1e-4)


def test_cupy_follows_work_of_renga():
    x = cuda.to_gpu(X)
    y = F.exp(F.tanh(x))
    with cupy.cuda.Stream(non_blocking=True):
        z = y.array + 1
        w = F.sqrt(z)
    total = w.array * 2  # again on the default stream
    expected = 2 * numpy.sqrt(numpy.exp(numpy.tanh(X)) + 1)
    numpy.testing.assert_allclose(total.get(), expected, rtol=1e-5)


def test_an_array_that_was_made_before_follows_work_of_renga():
    y = F.exp(F.tanh(cuda.to_gpu(X)))
    assert y.array.shape == X.shape  # on the default stream
    with cupy.cuda.Stream(non_blocking=True):
        z = (y.array + 1).get()
    numpy.testing.assert_allclose(z, numpy.exp(numpy.tanh(X)) + 1, rtol=1e-5)


def test_writes_of_cupy_in_a_context_are_seen():
    link = L.Linear(5, 3)
    W, b = link.W.array.copy(), link.b.array
    link.to_device("@cupy:0")
    x = cuda.to_gpu(X)
    for factor in (2, 3, 4):
        with cupy.cuda.Stream(non_blocking=True):
            link.W.array[...] *= factor
            y = link(x)
    numpy.testing.assert_allclose(
        cuda.to_cpu(y.array), X @ W.T * 24 + b, rtol=1e-4, atol=1e-4
    )


def test_streams_are_those_of_a_device():
    if cuda.load_plugin().count() < 2:
        pytest.skip("one device")
    results = []
    for index in (0, 1, 0):
        with cupy.cuda.Device(index), cupy.cuda.Stream(non_blocking=True):
            x = cupy.array(X) * (index + 1)
            results.append((index, F.exp(x)))
            other = F.exp(cuda.to_gpu(X, 1 - index))
            results.append((0, other))
    for index, y in results:
        expected = numpy.exp(X * (index + 1))
        numpy.testing.assert_allclose(cuda.to_cpu(y.array), expected, rtol=1e-5)


def test_memory_outlives_the_streams_on_which_it_was_allocated():
    """More streams than are kept alive for their memory, all destroyed by CuPy."""
    kept = []
    for i in range(40):
        with cupy.cuda.Stream(non_blocking=True):
            kept.append(F.exp(cuda.to_gpu(X + i)))
    gc.collect()
    for i in (0, 39, 17):
        found = cuda.to_cpu(F.log(kept[i]).array)
        numpy.testing.assert_allclose(found, X + i, rtol=1e-4, atol=1e-5)
    while kept:  # on the default stream
        kept.pop(len(kept) // 2)
    again = F.exp(cuda.to_gpu(X))
    numpy.testing.assert_allclose(cuda.to_cpu(again.array), numpy.exp(X), rtol=1e-5)


def test_memory_is_used_again_in_order():
    expected, found = [], []
    for i in range(12):
        x = cuda.to_gpu(X + i)
        if i % 2:
            with cupy.cuda.Stream(non_blocking=True):
                y = (F.tanh(x).array * 3) + 1
        else:
            y = F.tanh(x).array + 1
        expected.append(numpy.tanh(X + i) * (3 if i % 2 else 1) + 1)
        found.append(F.square(y))
        del x, y
    for x, y in zip(expected, found):
        numpy.testing.assert_allclose(cuda.to_cpu(y.array), x**2, rtol=1e-5)
