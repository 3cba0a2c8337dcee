"""MPI jobs that end, fork or fail while messages are in flight."""

import time

import pytest

from tests.communicators.transport.mpi.test_job import SOON, run_job

pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)

# Each rank has sent, and posted receives for, long messages that are not answered yet.
IN_FLIGHT = """
import gc

def threads():
    return len(os.listdir("/proc/self/task"))

def start_messages(tag=0):
    other = 1 - comm.rank if comm.rank < 2 else comm.rank
    return [
        work
        for i in range(4)
        for work in (
            comm.send(np.ones(500_000), other, tag + i, wait=False),
            comm.recv(other, tag + 100 + i, out=np.empty(500_000), wait=False),
        )
    ]
"""


@pytest.mark.parametrize("way", ["works = start_messages()", "start_messages()"])
@pytest.mark.parametrize("first", ["", "from mpi4py import MPI"])
def test_job_ends_with_messages_in_flight(tmp_path, way, first):
    if first:
        pytest.importorskip("mpi4py")
    body = f"""
    {way}
    comm.barrier()
    """
    code, output, seconds = run_job(tmp_path, body, first=f"{first}\n{IN_FLIGHT}")
    assert code == 0, output
    assert output.count("reached the end") == 2
    assert seconds < SOON


@pytest.mark.parametrize("number", ["SIGKILL", "SIGSEGV"])
def test_killed_rank_ends_those_with_messages_in_flight(tmp_path, number):
    body = f"""
    works = start_messages()
    comm.barrier()
    if comm.rank == 1:
        os.kill(os.getpid(), signal.{number})
    begun = time.perf_counter()
    while time.perf_counter() - begun < 60:
        np.ones((200, 200)) @ np.ones((200, 200))
    """
    code, output, seconds = run_job(tmp_path, body, ranks=3, first=IN_FLIGHT)
    assert code != 0
    assert "reached the end" not in output
    assert seconds < SOON


def test_exit_of_a_rank_fails_those_with_messages_in_flight(tmp_path):
    body = """
    works = start_messages()
    comm.barrier()
    if comm.rank == 1:
        sys.exit(0)
    works[1].wait()
    """
    code, output, seconds = run_job(tmp_path, body, first=IN_FLIGHT)
    assert code != 0
    assert "[rank 0] renga.communicators.failure.RankFailed: recv" in output
    assert "rank 1 has exited, rank 0 waits for it" in output
    assert seconds < SOON


def test_no_thread_remains_after_the_last_communicator(tmp_path):
    body = """
    def started():
        begun = time.perf_counter()
        while time.perf_counter() - begun < 20:
            if threads() == before + 1:
                return True
        return False

    half = comm.split(0, comm.rank)
    gc.collect()
    before = threads()
    works = start_messages()
    assert started()
    comm.barrier()
    works.clear()  # the receives are cancelled
    for i in range(4):
        assert comm.recv(1 - comm.rank, i)[-1] == 1  # of the dropped sends
    comm.barrier()
    del comm
    gc.collect()
    assert threads() == before + 1  # the group has it too
    comm = half
    works = start_messages()
    assert started()
    for i in range(4):
        assert comm.recv(1 - comm.rank, i)[-1] == 1
    comm.barrier()
    del comm, half, works
    gc.collect()
    assert threads() == before
    comm = create_communicator("messages")
    """
    code, output, _ = run_job(tmp_path, body, first=IN_FLIGHT)
    assert code == 0, output
    assert output.count("reached the end") == 2


def test_forks_with_messages_in_flight(tmp_path):
    body = """
    for turn in range(20):
        works = start_messages(10 * turn)
        child = os.fork()
        if child == 0:
            try:
                works[1].wait()
            except RuntimeError as error:
                assert "belongs to the process that has forked" in str(error)
            else:
                os._exit(7)
            del works, comm
            gc.collect()
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        for i in range(4):
            answer = np.full(500_000, 2.0)
            comm.send(answer, 1 - comm.rank, 10 * turn + 100 + i, wait=False)
            assert works[2 * i + 1].wait()[-1] == 2
            assert comm.recv(1 - comm.rank, 10 * turn + i)[-1] == 1
        comm.barrier()
    """
    code, output, _ = run_job(tmp_path, body, first=IN_FLIGHT)
    assert code == 0, output
    assert output.count("reached the end") == 2


def test_messages_do_not_advance_alone_without_thread_support(tmp_path):
    pytest.importorskip("mpi4py")
    first = """
import mpi4py
mpi4py.rc.thread_level = "serialized"
from mpi4py import MPI
"""
    body = """
    assert comm.thread_level() == "MPI_THREAD_SERIALIZED"
    before = threads()
    out = np.zeros(500_000)
    work = comm.recv(1 - comm.rank, 1, out=out, wait=False)
    comm.send(np.ones(500_000), 1 - comm.rank, 1, wait=False)
    time.sleep(0.5)
    assert threads() == before and out[-1] == 0
    assert work.wait()[-1] == 1
    comm.barrier()
    """
    begun = time.perf_counter()
    code, output, _ = run_job(tmp_path, body, first=first + IN_FLIGHT)
    assert code == 0, output
    assert output.count("reached the end") == 2
    assert time.perf_counter() - begun < SOON
