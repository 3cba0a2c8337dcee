"""The CUDA plugin: on a GPU, or on the stand-in for CUDA (``tools/cuda-standin``).

Operations are tested on its devices by ``tests/python/ops/test_coverage.py``.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import numpy
import pytest

import renga
import renga.functions as F
from renga import _core
from renga.backends import cuda, cuda_loader

try:
    _cuda, reason = cuda.load_plugin(), ""
except RuntimeError as error:
    _cuda, reason = None, str(error)
needs_cuda = pytest.mark.skipif(_cuda is None, reason=reason)
# Why there may be no CUDA. Anything else is a fault of the build.
REASONS = [
    r"cuda: expected a renga built with RENGA_CUDA \(`tools/cuda`\), got none",
    r"cuda: expected a CUDA device and its driver, got (no driver|no device"
    "|CUDA driver version is insufficient for CUDA runtime version)",
]


def random(*shape, dtype="float32"):
    return numpy.random.RandomState(0).standard_normal(shape).astype(dtype)


def on_device(x, index=0):
    variable = _core.Variable(x, requires_grad=True)
    variable.move_to(f"cuda:{index}")
    return variable


def host(variable):
    return cuda.to_cpu(variable.array)


def test_the_plugin_loads_or_says_why():
    if _cuda is None:
        assert any(re.fullmatch(pattern, reason) for pattern in REASONS), reason
        with pytest.raises(RuntimeError, match=f"^{re.escape(reason)}$"):
            cuda.to_gpu(numpy.zeros(3))
        assert "cuda" not in _core.device_names()
    else:
        assert "cuda" in _core.device_names()
        assert _cuda.count() > 0


def test_a_missing_library_names_what_has_it(monkeypatch):
    def raise_error(name):
        raise ImportError("libnccl.so.2: cannot open shared object file: No such file")

    monkeypatch.setattr(cuda_loader.importlib, "import_module", raise_error)
    reason = cuda_loader.nccl_unavailable_reason()
    assert re.fullmatch(r"libnccl\.so\.2: .*; `pip install renga\[cuda\]` .*", reason)


@needs_cuda
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int16", "int64", "float16", "float64"]
)
def test_copies_to_the_device_and_back(dtype):
    x = (random(5, 6) * 9).astype(dtype)[::-1, ::2]
    numpy.testing.assert_array_equal(host(on_device(x)), x)


@needs_cuda
def test_other_libraries_find_the_memory():
    x = on_device(random(4, 6).T)
    described = x.__cuda_array_interface__
    assert described["shape"] == (6, 4)
    assert described["typestr"] == "<f4"
    assert described["version"] == 3
    assert not hasattr(_core.Variable(random(2)), "__cuda_array_interface__")


@needs_cuda
def test_casts_agree_with_the_host():
    x = numpy.array([0, -1.9, 300.7, 1e10, 2.0**31, -numpy.inf, numpy.nan, 1e19])
    for dtype in ("bool", "uint8", "int8", "int32", "int64", "float16", "float32"):
        y = host(_core.ops.cast(on_device(x), dtype))
        expected = _core.ops.cast(_core.Variable(x), dtype).array
        numpy.testing.assert_array_equal(y, expected)


@needs_cuda
def test_random_numbers_are_those_of_the_host():
    x, seed = random(1000), 987654321012
    for name, args in (("dropout", (0.3, seed)), ("dropout", (0.999, seed))):
        operation = getattr(_core.ops, name)
        numpy.testing.assert_array_equal(
            host(operation(on_device(x), *args)), operation(x, *args).array
        )
    zeros = numpy.zeros((5, 37))
    on_host = _core.ops.gaussian(zeros, zeros, seed).array
    y = host(_core.ops.gaussian(on_device(zeros), on_device(zeros), seed))
    numpy.testing.assert_allclose(y, on_host, rtol=1e-14)


@needs_cuda
@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
def test_products_in_lower_precision(precision):
    a, b = random(40, 300), random(300, 20)
    with renga.using_config("compute_precision", precision):
        y = host(_core.ops.matmul(on_device(a), on_device(b)))
    expected = a.astype("d") @ b.astype("d")
    tolerance = {"highest": 3e-6, "high": 3e-5, "medium": 4e-3}[precision]
    error = abs(y - expected).max() / abs(expected).max()
    assert error < tolerance


@needs_cuda
@pytest.mark.parametrize("shape", [(100_000, 3), (3, 100_000), (7, 300, 50)])
def test_long_reductions_have_the_same_bits_every_time(shape):
    x = random(*shape)
    for axes in ((0,), (1,), tuple(range(len(shape)))):
        sums = [host(_core.ops.sum(on_device(x), axes)) for _ in range(2)]
        assert sums[0].tobytes() == sums[1].tobytes()
        numpy.testing.assert_allclose(
            sums[0], x.sum(axes, dtype="d"), rtol=1e-6, atol=1e-4
        )


@needs_cuda
def test_second_device():
    if _cuda.count() < 2:
        pytest.skip("one device")
    x = random(4, 3)
    y = _core.ops.exp(on_device(x, 1))
    assert y.device_name == "cuda:1"
    y.move_to("cuda:0")
    assert y.device_name == "cuda:0"
    numpy.testing.assert_allclose(host(y), numpy.exp(x), rtol=1e-6)
    with pytest.raises(ValueError, match="on one device, got cuda:0 and cuda:1"):
        _core.ops.add(on_device(x, 0), on_device(x, 1))
    with pytest.raises(ValueError, match=r"expected cuda:0 to cuda:\d+, got cuda:9"):
        on_device(x, 9)


@needs_cuda
@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("matmul", [(2, 3), (3, 2)]),
        ("linear", [(2, 3), (4, 3), (4,)]),
        ("convolution_2d", [(1, 2, 4, 4), (3, 2, 3, 3), (3,)]),
        ("deconvolution_2d", [(1, 2, 4, 4), (2, 3, 3, 3), (3,)]),
        ("add", [(2, 3), (2, 3)]),
    ],
)
def test_operands_on_the_host_are_errors(name, shapes):
    """Their addresses would end all that the process computes on the device."""
    for there in range(len(shapes)):
        xs = [random(*shape) for shape in shapes]
        xs[there] = on_device(xs[there])
        with pytest.raises(
            ValueError, match=f"{name}.*: expected arrays on one device"
        ):
            getattr(F, name)(*xs)


def run(program: str) -> str:
    """What a program with the stand-in in place of CUDA prints."""
    if importlib.util.find_spec("renga._cuda_standin") is None:
        pytest.skip("RENGA_CUDA_STANDIN is off")
    start = """
import ctypes, importlib, pathlib, sys
import numpy, renga
from renga import _core
from renga.backends import cuda
standin = ctypes.CDLL(str(pathlib.Path(_core.__file__).parent / "libcuda_standin.so"))
def use():
    sys.modules["renga._cuda"] = importlib.import_module("renga._cuda_standin")
    cuda.load_plugin()
"""
    done = subprocess.run(
        [sys.executable, "-c", start + program], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_a_driver_one_line_tells_why():
    output = run("""
standin.cuda_standin_devices(0)
try:
    use()
except ImportError as error:
    print(error)
print(_core.device_names())
""")
    line = "expected a CUDA device and its driver, got no driver"
    assert output == f"{line}\n['cpu']\n"


def test_libraries_are_named_and_old_ones_refused():
    output = run("""
version = ctypes.c_size_t.in_dll(standin, "cuda_standin_cudnn")
version.value = 8907
try:
    use()
except ImportError as error:
    print(error)
version.value = 91002
use()
renga.print_runtime_info()
""")
    refused, *lines = output.splitlines()
    assert refused.startswith("expected cuDNN 9.0 and cuBLAS 12.0 or newer")
    assert refused.endswith("got cuDNN 8.9 and cuBLAS 13.1")
    assert "CUDA: available, cuBLAS 13.1, cuDNN 9.10, driver 13.0" in lines


def test_failures_of_cuda_are_errors_that_name_the_call():
    output = run("""
use()
x = _core.Variable(numpy.ones(3, "f"))
x.move_to("cuda:0")
_core.ops.exp(x)  # its memory is used again
for error in (2, 719):
    standin.cuda_standin_fail(ctypes.c_int64(0), error)
    try:
        _core.ops.exp(x)
    except (RuntimeError, MemoryError) as raised:
        print(type(raised).__name__, raised)
print(_core.ops.exp(x).array.get())
""")
    assert output.splitlines() == [
        "MemoryError exp: cuda: out of memory in cudaLaunchKernelEx",
        "RuntimeError cuda: unspecified launch failure in cudaLaunchKernelEx",
        "[2.7182817 2.7182817 2.7182817]",
    ]


def test_memory_that_is_exhausted_is_an_error():
    output = run("""
use()
kept = []
standin.cuda_standin_capacity(ctypes.c_size_t(1 << 27))
try:
    for _ in range(9):
        x = _core.Variable(numpy.ones(1 << 24, "f"))
        x.move_to("cuda:0")
        kept.append(x)
except MemoryError as raised:
    print(len(kept), raised)
""")
    assert re.fullmatch(
        r"2 out of memory on cuda:0: requested 67108864 bytes, \d+ bytes are in use\n",
        output,
    )


def test_nothing_waits_for_the_device_before_a_result_is_read():
    output = run("""
use()
x = _core.Variable(numpy.ones((8, 8), "f"), requires_grad=True)
x.move_to("cuda:0")
for _ in range(3):
    y = _core.ops.sum(_core.ops.exp(_core.ops.matmul(x, x)))
    _core.grad([y], [x], [], [])
print(standin.cuda_standin_pending() > 0, standin.cuda_standin_waits())
print(f"{y.array.item():.6g}")
""")
    assert output == f"True 0\n{numpy.float32(64) * numpy.exp(numpy.float32(8)):.6g}\n"
