"""Hooks that time and mark functions on devices."""

from __future__ import annotations

import ctypes
import pathlib
import sys

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import _core, function_hooks, link_hooks
from renga.backends import cuda

if getattr(sys.modules.get("renga._cuda"), "__name__", "") != "renga._cuda_standin":
    pytest.skip(
        "needs the environment variable RENGA_CUDA_STANDIN", allow_module_level=True
    )
pytestmark = pytest.mark.usefixtures("without_garbage")  # waits are counted
standin = ctypes.CDLL(str(pathlib.Path(_core.__file__).parent / "libcuda_standin.so"))
LATE = 1632  # with this seed, it runs none of 73 operations before the host waits


def x_on(index):
    """An array on a device that is late: it begins once the host waits for it."""
    x = cuda.to_gpu(numpy.ones((64, 64), "f"), index)
    cuda.Device(index).synchronize()
    standin.cuda_standin_seed(ctypes.c_uint64(LATE))
    return renga.Variable(x)


@pytest.mark.parametrize("index", [0, 1])
def test_functions_are_timed_by_events_on_their_device(index):
    x = x_on(index)
    hook = function_hooks.TimerHook()
    before = standin.cuda_standin_waits()
    with hook:
        F.sum(F.exp(F.tanh(x))).backward()
    assert standin.cuda_standin_waits() == before
    assert standin.cuda_standin_pending() > 0
    names = ["tanh", "exp", "sum", "sum", "exp", "tanh"]
    assert [name for name, _ in hook.call_history] == names
    assert standin.cuda_standin_waits() > before
    times = [seconds for _, seconds in hook.call_history]
    assert all(0 < seconds < 60 for seconds in times)
    assert hook.total_time() == pytest.approx(sum(times))
    assert hook.summary()["exp"]["occurrence"] == 2


def test_the_time_is_that_of_the_device():
    """The stand-in computes when the host waits, long after the functions returned."""
    y = renga.Variable(cuda.to_gpu(numpy.ones((512, 512), "f")))
    x = x_on(0)
    hook = function_hooks.TimerHook()
    with hook:
        F.tanh(x)
        F.matmul(y, y)
    times = dict(hook.call_history)
    assert times["matmul"] > 3 * times["tanh"]


def test_links_are_timed_with_what_they_call():
    model = renga.Sequential(L.Linear(64, 8), F.relu, L.Linear(8, 2))
    model.to_device("@cupy:0")
    hook = link_hooks.TimerHook()
    x = x_on(0)
    before = standin.cuda_standin_waits()
    with hook:
        model(x)
    assert standin.cuda_standin_waits() == before
    times = hook.call_history
    assert [name for name, _ in times] == ["Linear", "Linear", "Sequential"]
    assert times[2][1] >= times[0][1] + times[1][1] > 0
    assert hook.total_time() == pytest.approx(times[2][1])


def test_ranges_of_nvidias_profilers():
    nvtx = cuda.cupy.cuda.nvtx
    nvtx.ranges.clear()
    x = x_on(0)
    with function_hooks.CUDAProfileHook():
        F.sum(F.exp(x)).backward()
    names = ["exp.forward", "sum.forward", "sum.backward", "exp.backward"]
    expected = [entry for name in names for entry in (name, "pop")]
    assert nvtx.ranges == expected


def test_a_cupy_without_nvtx_is_an_error(monkeypatch):
    monkeypatch.delattr(cuda.cupy.cuda, "nvtx")
    with pytest.raises(RuntimeError, match="expected a CuPy with NVTX"):
        function_hooks.CUDAProfileHook()
