"""MPI jobs in which a rank fails: each ends soon, with an error message."""

import re
import subprocess
import sys
import textwrap
import time

import pytest

from renga.launch import mpiexec_command, mpiexec_environment

pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)

# Long before any time-out or sleep below is over, also where cores are short.
SOON = 30

BEGINNING = """
import os, signal, sys, threading, time
import numpy as np
{first}
from renga.communicators import create_communicator
comm = create_communicator({name!r})
comm.barrier()
"""
END = """
comm.all_reduce(np.ones(3))
print("reached the end")
"""


def run_job(tmp_path, body, ranks=2, name="mpi", first="", timeout="60", **variables):
    """Runs a script on every rank; its exit code, output and seconds."""
    script = tmp_path / "script.py"
    start = BEGINNING.format(name=name, first=first)
    script.write_text(start + textwrap.dedent(body) + END)
    environment = {**mpiexec_environment(ranks), "RENGA_TIMEOUT": timeout, **variables}
    begun = time.perf_counter()
    done = subprocess.run(
        [*mpiexec_command(ranks), sys.executable, str(script)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout, time.perf_counter() - begun


@pytest.mark.parametrize("name", ["mpi", "messages"])
def test_exception_in_one_rank_ends_the_job(tmp_path, name):
    body = "if comm.rank == 1: raise ValueError('no luck')"
    code, output, seconds = run_job(tmp_path, body, name=name)
    assert code != 0
    assert "[rank 1] Traceback (most recent call last):" in output
    assert "[rank 1] ValueError: no luck" in output
    assert "reached the end" not in output
    assert seconds < SOON


def test_exception_in_a_thread_ends_the_job(tmp_path):
    # Its attributes cannot be read, and nobody reads what this rank has written.
    body = """
    class Odd(KeyError):
        def __getattr__(self, name):
            raise LookupError(name)
    def fail():
        raise Odd("in a thread")
    if comm.rank == 1:
        reading, sys.stdout = os.pipe()
        sys.stdout = open(sys.stdout, "w")
        os.close(reading)
        print("unread")
        threading.Thread(target=fail).start()
        time.sleep(60)
    """
    code, output, seconds = run_job(tmp_path, body)
    assert code != 0
    assert "[rank 1] Odd: 'in a thread'" in output
    assert seconds < SOON


@pytest.mark.parametrize("number", ["SIGKILL", "SIGSEGV"])
def test_killed_rank_ends_the_job(tmp_path, number):
    body = f"""
    if comm.rank == 1:
        os.kill(os.getpid(), signal.{number})
        time.sleep(60)
    """
    code, output, seconds = run_job(tmp_path, body)
    assert code != 0
    assert "reached the end" not in output
    assert seconds < SOON


def test_sigterm_runs_cleanup(tmp_path):
    body = """
    try:
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
    except SystemExit:
        print("cleaned up", flush=True)
        raise
    """
    code, output, seconds = run_job(tmp_path, body)
    assert code != 0
    assert "cleaned up" in output and "reached the end" not in output
    assert seconds < SOON


def test_sys_exit_with_an_error_ends_the_job(tmp_path):
    code, output, seconds = run_job(tmp_path, "if comm.rank == 1: sys.exit(3)")
    assert code == 3
    assert seconds < SOON


@pytest.mark.parametrize("name", ["mpi", "messages"])
def test_timeout_names_missing_rank(tmp_path, name):
    body = "if comm.rank == 1: time.sleep(60)"
    code, output, _ = run_job(tmp_path, body, name=name, timeout="1")
    assert code != 0
    assert "[rank 0] TimeoutError: all_reduce sum float64 (3,) at " in output
    assert re.search(r"script.py:\d+ in <module>: rank 0 waited 1 s", output)
    assert "waited 1 s for rank 1" in output


@pytest.mark.parametrize(
    ("name", "way"),
    [("mpi", "sys.exit(0)"), ("mpi", "os._exit(0)"), ("messages", "raise SystemExit")],
)
def test_rank_that_exits_fails_a_collective(tmp_path, name, way):
    body = f"""
    if comm.rank == 1:
        {way}
    """
    code, output, seconds = run_job(tmp_path, body, name=name)
    assert code != 0
    assert "reached the end" not in output
    if "_exit" not in way:
        assert "[rank 0] renga.communicators.failure.RankFailed" in output
        assert "rank 1 has exited, rank 0 waits for it" in output
    assert seconds < SOON


def test_rank_that_exits_fails_a_receive(tmp_path):
    body = """
    half = comm.split(comm.rank // 2, 0)
    if comm.rank == 3:
        half.send_obj("last words", 0, tag=1)
        sys.exit(0)
    if comm.rank == 2:
        time.sleep(1)
        print(half.recv_obj(1, tag=1))
        half.recv_obj(1, tag=1)
    if comm.rank < 2:
        half.barrier()
        time.sleep(60)
    """
    code, output, seconds = run_job(tmp_path, body, ranks=4)
    assert code != 0
    assert "last words" in output
    assert "[rank 2]" in output
    assert re.search(r"from rank 1 at .*script.py:\d+ in <module>: rank 1 has", output)
    assert "exited, rank 0 waits for it" in output
    assert seconds < SOON


def test_ranks_continue_after_others_have_exited(tmp_path):
    body = """
    alone = comm.split(comm.rank, 0)
    if comm.rank == 0:
        sys.exit(0)
    time.sleep(1)
    assert alone.all_reduce(np.ones(2)).sum() == 2
    print("did my part", flush=True)
    sys.exit(0)
    """
    code, output, _ = run_job(tmp_path, body, ranks=3)
    assert code == 0, output
    assert output.count("did my part") == 2


@pytest.mark.parametrize("way", ["config", "RENGA_DEBUG_COLLECTIVES"])
def test_different_shapes_are_named_in_debug_mode_without_shared_memory(tmp_path, way):
    first = (
        "import renga; renga.config.debug = True" if way == "config" else "import renga"
    )
    variables = {} if way == "config" else {way: "1"}
    body = "if comm.rank == 1: comm.all_reduce(np.ones(4))"
    code, output, _ = run_job(tmp_path, body, name="messages", first=first, **variables)
    assert code != 0
    assert "InvalidType: all_reduce: expected the same call on every rank" in output
    assert f"float64 (4,) at {tmp_path}/script.py:8 in <module> on rank 1" in output


@pytest.mark.parametrize("first", ["", "from mpi4py import MPI"])
def test_mpi_comm_has_the_same_ranks(tmp_path, first):
    pytest.importorskip("mpi4py")
    body = """
    everyone = comm.mpi_comm
    assert everyone.size == comm.size and everyone.rank == comm.rank
    assert everyone.allreduce(comm.rank) == 3
    from mpi4py import MPI
    last_two = MPI.COMM_WORLD.Split(int(comm.rank > 0), 0)
    assert create_communicator("messages", last_two).size == (2 if comm.rank else 1)
    """
    code, output, _ = run_job(tmp_path, body, ranks=3, first=first)
    assert code == 0, output
    assert output.count("reached the end") == 3


def test_communicators_of_groups_are_freed(tmp_path):
    """Open MPI numbers communicators by the least number that is free."""
    pytest.importorskip("mpi4py")
    body = """
    def group():
        return comm.split(comm.rank % 2, comm.rank)
    used = []
    for i in range(40):
        part = group()
        part.split(0, part.rank).all_reduce(np.ones(1000))
        if i < 2 or (i < 4 and comm.rank == 0):
            used.append(part)
        elif i == 4:  # nobody receives the message
            part.send(np.ones(3), (part.rank + 1) % part.size, wait=False)
    assert group().mpi_comm.py2f() < 60  # each group has three
    for part in used[:2]:
        assert part.allreduce_obj(1) == part.size
    """
    code, output, _ = run_job(tmp_path, body, ranks=3)
    assert code == 0, output
    assert output.count("reached the end") == 3


def test_exception_ends_the_job_if_mpi4py_initialized_mpi(tmp_path):
    pytest.importorskip("mpi4py")
    body = "if comm.rank == 1: raise ValueError('no luck')"
    code, output, seconds = run_job(tmp_path, body, first="from mpi4py import MPI")
    assert code != 0
    assert "[rank 1] ValueError: no luck" in output
    assert seconds < SOON
