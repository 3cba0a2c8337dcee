"""Results are the same if OpenMP provides fewer threads than requested, or none."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
import renga.functions as F
from renga import _core

_core.set_num_threads(4)
x = np.random.rand(1 << 20).astype("f")
np.testing.assert_allclose(F.sigmoid(x).array, 1 / (1 + np.exp(-x)), rtol=1e-5)
np.testing.assert_allclose(F.sum(x).array, x.sum(dtype="d"), rtol=1e-5)
a, b = np.random.rand(2, 300, 300).astype("f")
np.testing.assert_allclose(F.matmul(a, b).array, a.astype("d") @ b, rtol=1e-5)
x = np.random.rand(4, 16, 40, 40).astype("f")
W = np.random.rand(16, 16, 3, 3).astype("f")
windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
expected = np.einsum("nchwij,ocij->nohw", windows, W, dtype="d", optimize=True)
for kernel in "direct", "winograd", "gemm", "auto":
    _core.use_convolution_kernel(kernel)
    np.testing.assert_allclose(F.convolution_2d(x, W).array, expected, rtol=1e-4)
"""


@pytest.mark.parametrize(
    "setting",
    [{"OMP_THREAD_LIMIT": "1"}, {"OMP_THREAD_LIMIT": "3"}, {"OMP_DYNAMIC": "true"}],
)
def test_fewer_threads_than_asked_for(setting: dict) -> None:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        command,
        env={**os.environ, **setting},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr


FORKED = """
import os
import signal
import numpy as np
import renga.functions as F
from renga import _core

_core.set_num_threads(2)
x = np.random.rand(1 << 20).astype("f")
W = np.random.rand(300, 300).astype("f")
batch = x[:90_000].reshape(300, 300)


def results():
    return [y.array for y in (F.exp(x), F.sum(x), F.linear(batch, W))]


expected = results()
child = os.fork()
if child == 0:
    signal.alarm(60)
    assert _core.get_num_threads() == 1
    for threads in 1, 2:
        _core.set_num_threads(threads)
        for a, b in zip(results(), expected):
            np.testing.assert_array_equal(a, b)
    os._exit(0)
status = os.waitpid(child, 0)[1]
assert status == 0, status
assert _core.get_num_threads() == 2
for a, b in zip(results(), expected):
    np.testing.assert_array_equal(a, b)
"""


def test_forked_processes_compute_on_one_thread_or_as_many_as_they_set() -> None:
    command = [sys.executable, "-c", FORKED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
