"""pure_nccl: with GPUs, and what it says without."""

import subprocess
import sys

import pytest

from renga.backends import cuda
from renga.launch import mpiexec_command, mpiexec_environment

pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)

try:
    cuda.load_plugin()
    without_cuda = ""
except RuntimeError as error:
    without_cuda = str(error)


def run_on_two(tmp_path, program):
    script = tmp_path / "script.py"
    script.write_text(program)
    return subprocess.run(
        [*mpiexec_command(2), sys.executable, str(script)],
        env=mpiexec_environment(2),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )


@pytest.mark.parametrize("gpu", [False, True])
def test_one_line_says_so_where_a_gpu_is_not_used(tmp_path, gpu):
    from renga.communicators import nccl

    if not nccl.unavailable_reason():
        pytest.skip("there is a GPU")
    program = f"""
import numpy as np
from renga.communicators import create_communicator, nccl
nccl._has_gpu = lambda: {gpu}
comm = create_communicator()
assert comm.all_reduce(np.full(3, comm.rank + 1.0)).tolist() == [3, 3, 3]
"""
    done = run_on_two(tmp_path, program)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.replace("\0", "").splitlines()
    said = [line for line in lines if "pure_nccl" in line]
    assert len(said) == gpu
    assert all(line.endswith("arrays are sent through MPI") for line in said)


@pytest.mark.skipif(bool(without_cuda), reason=without_cuda)
def test_every_collective_on_gpus(tmp_path):
    cupy = pytest.importorskip("cupy")
    from renga.communicators import nccl

    if nccl.unavailable_reason() or cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip(nccl.unavailable_reason() or "one GPU")
    program = """
import cupy
import numpy as np
from renga.communicators import create_communicator
comm = create_communicator("pure_nccl")
cupy.cuda.Device(comm.intra_rank).use()
x = cupy.arange(6, dtype="float32").reshape(2, 3) + comm.rank
h = np.arange(6, dtype="float32").reshape(2, 3)
def check(y, expected):
    np.testing.assert_array_equal(cupy.asnumpy(y), expected)
check(comm.all_reduce(x), 2 * h + 1)
check(comm.all_reduce(x, "mean", dtype="float16", wait=False).wait(), h + 0.5)
check(comm.reduce_scatter(x), 2 * h[comm.rank] + 1)
check(comm.all_gather(x), np.stack([h, h + 1]))
check(comm.all_to_all(x), np.stack([h[comm.rank], h[comm.rank] + 1]))
check(comm.broadcast(x, root=1), h + 1)
print("reached the end")
"""
    done = run_on_two(tmp_path, program)
    assert done.stdout.count("reached the end") == 2, done.stderr
