"""renga run: ranks, their cores, output and status."""

import os
import subprocess
import sys

import pytest

from renga.cli import main
from renga.launch.arguments import Count
from renga.launch.plan import Plan
from renga.launch.rank import cores_of, usable_cores

pytestmark = pytest.mark.skipif(
    "OMPI_COMM_WORLD_RANK" in os.environ, reason="ranks do not start ranks"
)


def renga_run(tmp_path, program, *options, arguments=()):
    pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)
    script = tmp_path / "script.py"
    script.write_text(program)
    return subprocess.run(
        [sys.executable, "-m", "renga", "run", *options, script, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_ranks_communicate_and_their_lines_are_marked(tmp_path):
    program = """
import sys
import renga
comm = renga.distributed.create_communicator()
total = comm.allreduce_obj(comm.rank + int(sys.argv[2]))
print(sys.argv[1], total, __name__, sys.path[0])
"""
    # More ranks than this machine may have cores.
    done = renga_run(tmp_path, program, "-n", "3", arguments=["--a", "10"])
    assert done.returncode == 0, done.stderr
    expected = [f"[{r}]<stdout>: --a 33 __main__ {tmp_path}" for r in range(3)]
    assert sorted(done.stdout.replace("\0", "").split("\n")[:-1]) == expected
    assert "nccl" not in done.stderr.lower()


def test_one_rank_writes_unmarked_lines(tmp_path):
    done = renga_run(tmp_path, "print('alone')", "-n", "1")
    assert done.stdout.replace("\0", "") == "alone\n"


def test_a_failing_rank_ends_the_others_and_gives_its_status(tmp_path):
    program = """
import os, sys, time
if os.environ["OMPI_COMM_WORLD_RANK"] == "1":
    sys.exit(7)
time.sleep(90)
"""
    assert renga_run(tmp_path, program).returncode == 7


def test_an_exception_is_printed_with_its_rank(tmp_path):
    program = """
import renga
comm = renga.distributed.create_communicator()
if comm.rank == 1:
    raise LookupError("no data")
comm.barrier()
"""
    done = renga_run(tmp_path, program)
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if "LookupError" in line]
    assert lines
    assert all(line.startswith("[1]<stderr>: ") for line in lines)


def test_ranks_get_different_cores_and_as_many_threads(tmp_path):
    program = """
import os
import renga
print(*sorted(os.sched_getaffinity(0)), "t", renga.get_num_threads())
"""
    environment = dict(os.environ)
    os.environ.pop("OMP_NUM_THREADS", None)
    try:
        done = renga_run(tmp_path, program)
    finally:
        os.environ.update(environment)
    cores = len(os.sched_getaffinity(0))
    lines = [
        line.partition(": ")[2] for line in done.stdout.replace("\0", "").splitlines()
    ]
    masks = [set(line.split(" t ")[0].split()) for line in lines]
    assert len(masks) == 2
    if cores > 1:
        assert not masks[0] & masks[1]
    assert {line.split(" t ")[1] for line in lines} == {str(max(1, cores // 2))}


@pytest.mark.parametrize(
    ("cores", "ranks", "expected"),
    [
        (1, 1, "1 rank on this machine, 1 core,"),
        (1, 2, "2 ranks on this machine, 1 core,"),
        (4, 1, "1 rank on this machine, 4 cores,"),
        (4, 2, "2 ranks on this machine, 2 cores each,"),
        (4, 3, "3 ranks on this machine, 1 core each,"),
        (2, 3, "3 ranks on this machine, 2 cores,"),
    ],
)
def test_what_is_started_is_said(monkeypatch, cores, ranks, expected):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(cores)))
    plan = Plan(["train.py"], Count(ranks, ranks))
    assert plan.describe(ranks, {}) == f"train.py: {expected} by mpiexec"


def test_modules_are_run(tmp_path):
    done = renga_run(tmp_path, "print(1)", "-n", "1", "-m")  # a path is no module
    assert done.returncode == 1
    command = [sys.executable, "-m", "renga", "run", "-n", "1", "-m", "this"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert "Beautiful is better than ugly." in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-n", "0", __file__], "expected at least one rank, got 0"),
        (["no_such_file.py"], "expected a script, got 'no_such_file.py'"),
        (["--hosts", "", __file__], "--hosts: expected NAME:RANKS,NAME:RANKS, got ''"),
    ],
)
def test_mistakes_are_named(capsys, options, message):
    assert main(["run", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_missing_mpiexec_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["run", __file__]) == 2
    assert "pip install 'renga[mpi]'" in capsys.readouterr().err


def test_cores_are_shared_out_evenly():
    assert [cores_of(r, 2, [0, 4, 1, 5, 2]) for r in (0, 1)] == [[0, 4], [1, 5]]
    assert cores_of(2, 3, [8, 9]) == [8, 9]  # fewer cores than ranks
    assert sorted(usable_cores()) == sorted(os.sched_getaffinity(0))
