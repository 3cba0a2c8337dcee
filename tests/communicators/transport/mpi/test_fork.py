"""MPI jobs whose processes fork: children do not affect the ranks."""

import os
import signal
import subprocess
import sys
import time

import pytest

from renga.communicators.transport.mpi.stale_files import remove_stale_files
from renga.launch import mpiexec_command, mpiexec_environment
from tests.communicators.transport.mpi.random_kills import shared_files
from tests.communicators.transport.mpi.test_job import run_job

pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)

CHILD = """
def in_child(act):
    child = os.fork()
    if child == 0:
        act()
        sys.exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


# Ways in which a child ends, and its exit code.
ENDS = [
    ("lambda: None", 0),
    ("lambda: sys.exit(3)", 3),
    ("lambda: 1 / 0", 1),
    ("lambda: os._exit(4)", 4),
    ("lambda: os.kill(os.getpid(), signal.SIGKILL)", -9),
    ("lambda: comm.abort(5)", 5),
]


CANNOT_COMMUNICATE = """
work = comm.all_reduce(np.ones(100_000), wait=False)
work.wait()
def communicate():
    for call in (
        lambda: comm.barrier(),
        lambda: comm.all_reduce(np.ones(3)),
        lambda: comm.all_reduce(np.ones(3), wait=False),
        lambda: comm.send(np.ones(3), 0),
        lambda: comm.recv(0),
    ):
        try:
            call()
        except RuntimeError as error:
            assert "belongs to the process that has forked this one" in str(error)
        else:
            os._exit(7)
assert in_child(communicate) == 0
"""
HAS_A_COPY_OF_SHARED_MEMORY = """
placed, = comm.copy_to_window([np.arange(300_000.0)])
window = comm.window(1000)
window[:] = 1
def write():
    assert placed[-1] == 299_999
    placed[:] = -1
    window[:] = -1
    assert (placed == -1).all()
assert in_child(write) == 0
comm.barrier()
assert (placed == np.arange(300_000.0)).all() and (window == 1).all()
comm.all_reduce(window, out=window)
assert (window == 2).all()
"""
# Not forked, but started.
IS_NO_RANK = """
import subprocess
program = "from renga.communicators import create_communicator as c; c('mpi')"
command = [sys.executable, "-c", program]
done = subprocess.run(command, capture_output=True, text=True)
assert done.returncode == 1, done
assert "this process was started by a rank" in done.stderr, done.stderr
"""


@pytest.mark.parametrize("name", ["mpi", "messages"])
def test_forked_children_do_not_affect_the_ranks(tmp_path, name):
    body = CANNOT_COMMUNICATE
    if name == "mpi":
        body += HAS_A_COPY_OF_SHARED_MEMORY + IS_NO_RANK
    body += "".join(
        f"assert in_child({act}) == {code}\n"
        "comm.barrier()\n"
        "time.sleep(0.2)\n"  # in which the job would be ended
        for act, code in ENDS
    )
    status, output, _ = run_job(tmp_path, body, name=name, first=CHILD)
    assert status == 0, output
    assert output.count("reached the end") == 2
    assert "[rank" not in output


def test_training_with_forked_workers(tmp_path):
    body = """
    import multiprocessing
    import renga
    import renga.links as L
    from renga.distributed import create_multi_node_optimizer
    model = L.Classifier(L.Linear(4, 2))
    optimizer = create_multi_node_optimizer(renga.optimizers.Adam(), comm).setup(model)
    def overwrite(i):
        for param in model.params():
            param.array[...] = np.nan
        return np.full((4, 4), i, "f4")
    for step in range(3):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            for x in pool.map(overwrite, range(4)):
                optimizer.update(model, x, np.zeros(4, "i4"))
    sums = comm.allgather_obj(float(model.predictor.W.array.sum()))
    assert sums[0] == sums[1] and np.isfinite(sums[0])
    """
    status, output, _ = run_job(tmp_path, body, first="import multiprocessing")
    assert status == 0, output
    assert output.count("reached the end") == 2


def test_stale_files_of_a_killed_launcher_are_removed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys, time\n"
        "from renga.communicators import create_communicator\n"
        "comm = create_communicator('mpi')\n"
        "comm.barrier()\n"
        "if comm.rank == 0:\n"
        "    with open('maps', 'w') as file:\n"
        "        file.write(open('/proc/self/maps').read())\n"
        "    os.replace('maps', 'mapped')\n"
        "time.sleep(10)\n"
    )
    job = subprocess.Popen(
        [*mpiexec_command(2), sys.executable, str(script)],
        cwd=tmp_path,
        env=mpiexec_environment(2),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    mapped = tmp_path / "mapped"
    deadline = time.time() + 60
    while not mapped.exists() and time.time() < deadline:
        time.sleep(0.05)
    # Other jobs may run beside this one.
    maps = mapped.read_text()
    files = {name for name in shared_files() if name in maps}
    assert files and not any("renga" in name for name in files)
    assert not set(remove_stale_files(age=0)) & files  # the job goes on
    os.kill(job.pid, signal.SIGKILL)
    job.wait()
    deadline = time.time() + 60  # its ranks live on until they end by themselves
    while shared_files() & files and time.time() < deadline:
        time.sleep(0.2)
        remove_stale_files(age=0)
    assert not shared_files() & files
