"""renga run: ranks, their cores, output and status."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import zipfile

import pytest

from renga.cli import main
from renga.launch.arguments import Count
from renga.launch.parent import parent_command
from renga.launch.plan import LaunchPlan
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
    plan = LaunchPlan(["train.py"], Count(ranks, ranks))
    assert plan.describe(ranks, {}) == f"train.py: {expected} by mpiexec"


FOLDER = """
import os, sys
import renga
comm = renga.distributed.create_communicator("mpi")
print([__name__, sys.path[0], sys.argv, repr(input()), sys.stdin.read(), comm.size])
"""


def test_a_folder_is_run_without_a_home_and_reads_the_input(tmp_path):
    pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)
    folder = tmp_path / "program"
    folder.mkdir()
    run = [sys.executable, "-m", "renga", "run", "-n", "1"]
    done = subprocess.run([*run, folder], capture_output=True, text=True)
    assert done.returncode == 2 and "without __main__.py" in done.stderr
    (folder / "__main__.py").write_text(FOLDER)
    environment = {k: v for k, v in os.environ.items() if k != "HOME"}
    done = subprocess.run(
        [*run, str(folder), "--option"],
        input="first\nsecond\n",
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    found = done.stdout.replace("\0", "").strip()
    argv = [str(folder), "--option"]
    expected = ["__main__", str(folder), argv, "'first'", "second\n", 1]
    assert found == str(expected), done.stderr


def test_a_rank_that_may_be_restarted_runs_what_python_runs(tmp_path):
    program = "import sys\nprint([__name__, sys.argv, sys.path[0]])\n"
    (tmp_path / "folder").mkdir()
    for name in ("script.py", "folder/__main__.py"):
        (tmp_path / name).write_text(program)
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("__main__.py", program)
    programs = [["script.py", "a"], ["folder"], ["archive.zip", "-b"], ["-m", "folder"]]
    expected = [
        subprocess.run(
            [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True
        ).stdout
        for words in programs
    ]
    code = f"""
import sys
from renga.launch.member import run_program
path = list(sys.path)
for program in {programs}:
    sys.path[:] = ["", *path]
    run_program(program)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    ours = [eval(line) for line in done.stdout.splitlines()]
    for found, line in zip(ours, expected):
        want = eval(line)
        assert found[:2] == want[:2]
        assert os.path.abspath(tmp_path / found[2]) == os.path.abspath(
            tmp_path / want[2]
        )


RANK = """
import os, pathlib, sys, time
rank = os.environ["OMPI_COMM_WORLD_RANK"]
pathlib.Path(sys.argv[-1], rank + ".tmp").write_text(str(os.getpid()))
pathlib.Path(sys.argv[-1], rank + ".tmp").rename(pathlib.Path(sys.argv[-1], rank))
time.sleep(90)
"""
LAUNCH = """
import sys
from renga.launch import launch
launch(exec, sys.argv[1], {"sys": sys}, ranks=2)
"""


@pytest.mark.parametrize(
    ("way", "number", "status"),
    [
        ("run", signal.SIGKILL, -9),
        ("run", signal.SIGTERM, 143),
        ("run", signal.SIGINT, 130),
        ("launch", signal.SIGKILL, -9),
    ],
)
def test_no_rank_outlives_its_launcher(tmp_path, way, number, status):
    pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)
    script = tmp_path / "script.py"
    script.write_text(RANK)
    command = ["-m", "renga", "run", "-n", "2", str(script), str(tmp_path)]
    if way == "launch":
        program = RANK.replace("sys.argv[-1]", repr(str(tmp_path)))
        command = ["-c", LAUNCH, program]
    with subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.DEVNULL,
        # A shell has what it runs in the background ignore this signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as job:
        files = [tmp_path / "0", tmp_path / "1"]
        end = time.monotonic() + 60
        while not all(f.exists() for f in files) and time.monotonic() < end:
            time.sleep(0.02)
        job.send_signal(number)
    ranks = [file.read_text() for file in files]
    end = time.monotonic() + 10
    while any(map(is_alive, ranks)) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(map(is_alive, ranks))
    assert job.returncode == status


def is_alive(process):
    try:
        status = pathlib.Path("/proc", process, "stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


SLEEPER = "import time; print('begun', flush=True); time.sleep(60)"


@pytest.mark.parametrize(
    ("program", "numbers", "status"),
    [
        ("import sys; sys.exit(7)", [], 7),
        ("import os; os.kill(os.getpid(), 9)", [], 137),
        (SLEEPER, [signal.SIGHUP], 129),
        (f"import signal; signal.signal(15, lambda *_: exit(1)); {SLEEPER}", [15], 143),
    ],
)
def test_the_status_is_that_of_a_shell(program, numbers, status):
    command = parent_command(["sh", "-c", 'exec "$0" -c "$1"', sys.executable, program])
    job = subprocess.Popen(command, stdout=subprocess.PIPE)
    if numbers:
        assert job.stdout.readline() == b"begun\n"
    for number in numbers:
        job.send_signal(number)
    assert job.wait(20) == status
    job.stdout.close()


def test_a_signal_that_asks_for_no_end_reaches_the_program():
    program = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
print("begun", flush=True)
print(signal.sigwait({signal.SIGUSR1}).name, flush=True)
"""
    command = parent_command([sys.executable, "-c", program])
    job = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert job.stdout.readline() == b"begun\n"
    job.send_signal(signal.SIGUSR1)
    assert job.communicate(timeout=20)[0] == b"SIGUSR1\n"
    assert job.returncode == 0


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
