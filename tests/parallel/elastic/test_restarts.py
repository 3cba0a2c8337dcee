"""Jobs that go on when ranks fail, end when they should, and leave nothing behind."""

import os
import random
import signal
import subprocess
import sys
import time
import types

import pytest

from renga.launch.arguments import Count
from renga.launch.plan import LaunchPlan
from renga.launch.supervisor import Supervisor
from tests.parallel.elastic.random_changes import Training, processes_left

pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)
pytestmark = pytest.mark.skipif(
    "OMPI_COMM_WORLD_RANK" in os.environ, reason="ranks do not start ranks"
)


@pytest.fixture
def training(tmp_path):
    started = Training(tmp_path, "2:3", 5)
    yield started
    started.end()


def test_training_goes_on_whichever_rank_dies(training):
    chance = random.Random(2)
    training.kill_once(chance)

    # At a checkpoint the rank that is missing joins again.
    training.until(lambda: training.notes("step")[-1]["ranks"] == 3, "three ranks")
    training.kill_once(chance)
    training.finish()
    output = training.output()
    assert "restart 2 of 5" in output
    assert "3 ranks on this machine" in output


def test_ranks_end_with_renga_run(training):
    training.until(lambda: training.notes("step"), "an iteration")
    training.job.kill()
    limit = time.monotonic() + 30
    while processes_left() and time.monotonic() < limit:
        time.sleep(0.1)
    assert not processes_left()


PLAIN = """
import os, pathlib, signal, sys
from renga.distributed import create_communicator
comm = create_communicator()
folder = pathlib.Path(sys.argv[1])
starts = comm.allgather_obj((folder / "first").exists())
comm.barrier()
print(__name__, sys.path[0] == os.path.dirname(__file__), comm.size, starts)
if not starts[0]:
    (folder / "first").touch()
    if comm.rank == 1:
        FAIL
comm.barrier()
"""


def renga_run(tmp_path, program, *options):
    script = tmp_path / "script.py"
    script.write_text(program)
    return subprocess.run(
        [sys.executable, "-m", "renga.launch", *options, script, tmp_path],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )


@pytest.mark.parametrize(
    "failure", ["os.kill(os.getpid(), signal.SIGKILL)", "raise LookupError('no data')"]
)
def test_any_script_is_started_again(tmp_path, failure):
    done = renga_run(tmp_path, PLAIN.replace("FAIL", failure), "-n2", "--restarts=1")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for rank in range(2):
        assert f"[{rank}]<stdout>: __main__ True 2 [False, False]" in lines
        assert f"[{rank}]<stdout>: __main__ True 2 [True, True]" in lines
    assert "1 of 2 failed; going on with 2 (restart 1 of 1)" in done.stderr
    assert ("LookupError: no data" in done.stderr) == ("LookupError" in failure)


def test_the_status_of_the_last_job_is_returned(tmp_path):
    program = """
import os, pathlib, sys
if os.environ["PMIX_RANK"] == "1":
    (pathlib.Path(sys.argv[1]) / f"{os.getpid()}.start").touch()
    sys.exit(7)
"""
    done = renga_run(tmp_path, program, "-n2", "--restarts=1")
    assert done.returncode == 7
    # Two jobs have run; the one that stood by in the end has not.
    assert len(list(tmp_path.glob("*.start"))) == 2
    assert "(restart 1 of 1)" in done.stderr


def job_of(hosts, living):
    """A job on hosts, of which only some ranks live."""
    members = {rank: types.SimpleNamespace(rank=rank) for rank in range(len(hosts))}
    alive = [members[rank] for rank in living]
    return types.SimpleNamespace(
        size=len(hosts), host_of=hosts, members=members, living=alive
    )


@pytest.mark.parametrize(
    ("standby", "down", "size"),
    [
        (None, {"b"}, 2),
        (job_of(["a", "a", "b"], [0, 1]), {"b"}, 2),
        (job_of(["a", "a", "b"], [0, 1, 2]), set(), 3),  # its ranks died, not the host
        (job_of(["a", "a", "b"], []), {"b"}, 2),
    ],
)
def test_hosts_without_a_living_rank_are_left_out(standby, down, size):
    supervisor = Supervisor.__new__(Supervisor)
    plan = LaunchPlan(["train.py"], Count(1, 4), {"a": 2, "b": 2})
    active = job_of(["a", "a", "b", "b"], [0, 1])
    vars(supervisor).update(_plan=plan, _down=set(), _active=active, _standby=standby)
    supervisor._note_hosts_that_are_down()
    assert supervisor._down == down
    assert supervisor._next_size(grows=False) == size
    assert supervisor._next_size(grows=True) == 4
    expected = {"a": 2} if down else {"a": 2, "b": 1}
    assert plan.ranks_by_host(size, sorted(down)) == expected


def test_an_interrupt_ends_everything(training):
    training.until(lambda: training.notes("step"), "an iteration")
    training.job.send_signal(signal.SIGTERM)
    assert training.job.wait(30) == 128 + signal.SIGTERM
    assert not processes_left()
