"""renga run on several hosts, and under Slurm."""

import os
import stat
import subprocess
import sys

import pytest

from renga.launch.arguments import fill, parse_hosts, parse_ranks
from renga.launch.rank import slurm_threads, tasks_of_node
from renga.launch.slurm import is_rank, srun_command
from tests.communicators.transport.mpi import hosts as simulated_hosts

pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)
pytestmark = pytest.mark.skipif(
    "OMPI_COMM_WORLD_RANK" in os.environ, reason="ranks do not start ranks"
)

PROGRAM = """
import os
import renga
comm = renga.distributed.create_communicator()
names = comm.allgather_obj(os.uname().nodename)
threads = os.environ["OMP_NUM_THREADS"]
print("ranks", comm.size, "host", names.index(os.uname().nodename), "t", threads)
"""

# An srun with PMIx: ranks have no variables of Open MPI's own.
SRUN = """#!/bin/sh
echo "$@" >> "$SRUN_CALLS"
[ "$1" = --mpi=list ] && { echo "MPI plugin types are... pmix"; exit; }
while [ "${1#-}" != "$1" ]; do
    case $1 in --ntasks=*) tasks=${1#*=};; esac
    shift
done
export SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=$tasks
exec MPIEXEC -n $tasks --bind-to none env -u OMPI_COMM_WORLD_RANK \\
    -u OMPI_COMM_WORLD_LOCAL_RANK -u OMPI_COMM_WORLD_LOCAL_SIZE "$@"
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """An allocation of four tasks; the calls of its srun."""
    from renga.launch import mpiexec_command

    srun = tmp_path / "bin" / "srun"
    srun.parent.mkdir()
    srun.write_text(SRUN.replace("MPIEXEC", mpiexec_command(1)[0]))
    srun.chmod(srun.stat().st_mode | stat.S_IXUSR)
    calls = tmp_path / "calls"
    settings = {"SLURM_JOB_ID": "17", "SLURM_NTASKS": "3", "SLURM_CPUS_PER_TASK": "1"}
    # The program in srun's place is mpiexec, which refuses root.
    allow = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    settings |= dict.fromkeys(allow, "1")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{srun.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SRUN_CALLS", str(calls))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    return calls


def start(*command):
    return subprocess.run(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )


def texts(output):
    """Lines without the rank that mpiexec puts before them."""
    lines = output.replace("\0", "").splitlines()
    return sorted(line.rpartition(">: ")[2] for line in lines if "ranks" in line)


@pytest.mark.skipif(bool(simulated_hosts.missing()), reason=simulated_hosts.missing())
def test_hosts_get_their_ranks(tmp_path, script):
    with simulated_hosts.hosts(2, tmp_path) as hosts:
        first, second = hosts.names
        command = [sys.executable, "-m", "renga", "run"]
        command += ["--hosts", f"{first}:2,{second}", str(script)]
        done = hosts.start(command, dict(os.environ))
    assert done.returncode == 0, done.stdout
    assert f"3 ranks on {first}:2, {second}:1, by mpiexec" in done.stdout
    found = [text.split(" t ")[0] for text in texts(done.stdout) if "renga" not in text]
    assert found == ["ranks 3 host 0", "ranks 3 host 0", "ranks 3 host 2"]


def test_slurm_starts_the_ranks(slurm, script):
    done = start(sys.executable, "-m", "renga.launch", script)
    assert done.returncode == 0, done.stderr
    assert texts(done.stdout) == [f"ranks 3 host 0 t {1}"] * 3
    call = slurm.read_text().splitlines()[-1]
    assert call.startswith("--mpi=pmix --overlap --kill-on-bad-exit=1 --ntasks=3 ")
    assert "3 ranks on allocation 17, by srun" in done.stderr


def test_what_srun_has_started_is_a_rank(slurm, script):
    run = [sys.executable, "-m", "renga", "run"]
    done = start("srun", "--mpi=pmix", "--ntasks=2", *run, script)
    assert done.returncode == 0, done.stderr
    assert texts(done.stdout) == ["ranks 2 host 0 t 1"] * 2
    refused = start("srun", "--mpi=pmix", "--ntasks=1", *run, "-n", "2", script)
    assert refused.returncode == 2
    assert "this process is a rank already" in refused.stderr


def test_tasks_without_pmix_are_refused(monkeypatch, script):
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    done = start(sys.executable, script)
    assert done.returncode == 1
    assert "got 4 without; `srun --mpi=pmix`" in done.stderr


def test_ranks_are_known_by_their_variables():
    assert is_rank({"OMPI_COMM_WORLD_RANK": "0"})
    assert is_rank({"PMIX_RANK": "3", "SLURM_STEP_ID": "0"})
    assert not is_rank({"SLURM_JOB_ID": "5", "SLURM_PROCID": "0"})  # a batch script


def test_srun_is_told_the_hosts():
    command = srun_command(3, {"a": 2, "b": 1})
    assert command[4:] == [
        *("--ntasks=3", "--nodelist=a,b", "--nodes=2"),
        *("--ntasks-per-node=2", "--distribution=block,Pack"),
    ]


def test_threads_of_a_task():
    assert [tasks_of_node("2(x3),1", node) for node in range(4)] == [2, 2, 2, 1]
    of_node = {"SLURM_STEP_TASKS_PER_NODE": "4", "SLURM_CPUS_ON_NODE": "16"}
    assert slurm_threads(of_node, 16) == 4
    assert slurm_threads(of_node, 2) == 2  # srun has bound it
    assert slurm_threads({"SLURM_CPUS_PER_TASK": "3"}, 16) == 3


def test_ranks_and_hosts_are_read():
    assert parse_ranks("4") == (4, 4)
    assert parse_ranks("2:4") == (2, 4)
    assert parse_hosts("a:2, 10.0.0.1,b-c.d:3") == {"a": 2, "10.0.0.1": 1, "b-c.d": 3}
    assert fill({"a": 2, "b": 2}, 3) == {"a": 2, "b": 1}
    assert fill({"a": 2, "b": 2}, 2) == {"a": 2}


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (parse_ranks, "two", "-n: expected a number of ranks or MIN:MAX, got 'two'"),
        (parse_ranks, "3:2", "-n: expected MIN:MAX with MIN <= MAX, got 3:2"),
        (parse_hosts, "a:2,a:1", "--hosts: expected NAME:RANKS,NAME:RANKS, got 'a:1'"),
        (parse_hosts, "a:0", "got 'a:0'"),
        (parse_hosts, "", "got ''"),
    ],
)
def test_mistakes_are_named(read, text, message):
    with pytest.raises(ValueError, match=message):
        read(text)


def test_more_ranks_than_places(capsys):
    from renga.cli import main

    assert main(["run", "--hosts", "a:2,b", "-n", "4", __file__]) == 2
    assert "expected at most 3 ranks on a:2,b, got 4" in capsys.readouterr().err
    assert main(["run", "--restarts", "-1", __file__]) == 2
    assert "--restarts: expected 0 or more, got -1" in capsys.readouterr().err
