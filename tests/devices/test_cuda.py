"""The CUDA plugin behind the device seam. Without a device most of this is skipped."""

from __future__ import annotations

import numpy
import pytest

from renga import _core
from renga.backends import cuda

try:
    _cuda, reason = cuda.load_plugin(), ""
except RuntimeError as error:
    _cuda, reason = None, str(error)
needs_cuda = pytest.mark.skipif(_cuda is None, reason=reason)


@pytest.mark.skipif(_cuda is not None, reason="there is a CUDA device")
def test_without_a_device_one_error_tells_why():
    with pytest.raises(
        RuntimeError, match="^cuda: .*(RENGA_CUDA|device|library|\\.so)"
    ):
        cuda.to_gpu(numpy.zeros(3))


def random(*shape, dtype="float32"):
    return numpy.random.RandomState(0).standard_normal(shape).astype(dtype)


def on_device(x):
    return _cuda.to_device(x)


DTYPES = {"float16": 4e-3, "float32": 1e-5, "float64": 1e-12}


@needs_cuda
@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float16", "float64"])
def test_copies_to_the_device_and_back(dtype):
    x = (random(5, 6) * 9).astype(dtype)[::-1, ::2]
    numpy.testing.assert_array_equal(on_device(x).array, x)


@needs_cuda
@pytest.mark.parametrize("dtype", DTYPES)
def test_add_broadcasts_over_any_strides(dtype):
    a, b = random(4, 6, dtype=dtype).T, random(4, dtype=dtype)
    y = _core.ops.add(on_device(a), on_device(b))
    numpy.testing.assert_allclose(y.array, a + b, rtol=DTYPES[dtype])


@needs_cuda
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transa", [False, True])
@pytest.mark.parametrize("transb", [False, True])
def test_matmul_and_its_gradients(dtype, transa, transb):
    a, b = random(3, 4, 5, dtype=dtype), random(3, 5, 6, dtype=dtype)
    a = a.swapaxes(1, 2).copy() if transa else a
    b = b.swapaxes(1, 2).copy() if transb else b
    check_against_host(_core.ops.matmul, a, b, transa, transb, tolerance=DTYPES[dtype])


@needs_cuda
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stride, groups", [(1, 1), (2, 2)])
def test_convolution_and_its_gradients(dtype, stride, groups):
    x, W = random(2, 4, 9, 7, dtype=dtype), random(6, 4 // groups, 3, 3, dtype=dtype)
    window = ((stride, stride), (1, 1), (1, 1), groups)
    check_against_host(
        lambda x, W: _core.ops.convolution_2d(x, W, None, window),
        x,
        W,
        tolerance=DTYPES[dtype],
    )


def check_against_host(function, *args, tolerance):
    """The same values and gradients as float64 arrays give on the host."""
    arrays = [x for x in args if isinstance(x, numpy.ndarray)]
    flags = args[len(arrays) :]
    device = [on_device(x) for x in arrays]
    host = [_core.Variable(x.astype("float64")) for x in arrays]
    results = []
    for xs in (device, host):
        y = function(*xs, *flags)
        gy = random(*y.shape, dtype=y.dtype)
        y.grad_var = on_device(gy) if xs is device else _core.Variable(gy)
        y.backward()
        results.append([y.array, *(x.grad for x in xs)])
    for got, expected in zip(*results):
        scale = abs(expected).max()
        numpy.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * scale)
