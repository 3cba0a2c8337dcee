"""Kills one of three ranks at a random moment, repeatedly, and checks the outcome.

    python tests/communicators/transport/mpi/random_kills.py --runs 200

Each time the job has to end within ten seconds, with an error and without a remaining
process, and the next job has to resume from the last complete checkpoint. Sometimes the
launcher is killed instead of a rank. At the end there may be no new file in /dev/shm or
in the folder of temporary files.
"""

from __future__ import annotations

import argparse
import collections
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid

from renga.communicators.transport.mpi.stale_files import remove_stale_files
from renga.launch import mpiexec_command, mpiexec_environment

RANKS = 3
SIGNALS = (signal.SIGKILL, signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT)
PROGRAM = pathlib.Path(__file__).with_name("killed_training.py")


def processes(mark: str) -> dict[int, int | None]:
    """The processes of a job, by a mark in their environment, with their ranks."""
    found: dict[int, int | None] = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:  # it has just gone, or is not ours
            continue
        if f"RENGA_TEST_JOB={mark}".encode() not in variables or state == "Z":
            continue
        ranks = [v for v in variables if v.startswith(b"OMPI_COMM_WORLD_RANK=")]
        found[int(entry.name)] = int(ranks[0].partition(b"=")[2]) if ranks else None
    return found


def last_complete(folder: pathlib.Path) -> int:
    """The newest iteration of which every rank has written its file; 0 for none."""
    ranks_at = collections.Counter(
        int(path.name.split(".")[2]) for path in folder.glob("cp.[0-9].[0-9]*")
    )
    return max((i for i, count in ranks_at.items() if count == RANKS), default=0)


def shared_files() -> set[str]:
    """What jobs could leave behind."""
    found = list(pathlib.Path(tempfile.gettempdir()).glob("ompi.[0-9]*"))
    for pattern in ("*renga*", "sm_segment.*", "vader_segment.*"):
        found += pathlib.Path("/dev/shm").glob(pattern)
    return {str(path) for path in found}


def wait_until(condition, seconds: float, what: str) -> float:
    """Seconds until ``condition()`` holds."""
    begun = time.perf_counter()
    while not condition():
        if time.perf_counter() - begun > seconds:
            raise AssertionError(f"{what}: not after {seconds} s")
        time.sleep(0.02)
    return time.perf_counter() - begun


def kill_once(
    folder: pathlib.Path, chance: random.Random, launcher: float = 0.0
) -> tuple[float, str]:
    """Starts the job and kills a rank; the seconds it lives on, and what was done."""
    expected = last_complete(folder)
    begun = folder / "begun"
    begun.unlink(missing_ok=True)
    mark = uuid.uuid4().hex
    environment = {**mpiexec_environment(RANKS), "RENGA_TEST_JOB": mark}
    environment["OMP_NUM_THREADS"] = "1"
    command = [*mpiexec_command(RANKS), sys.executable, str(PROGRAM), str(folder)]
    with open(folder / "output", "wb") as output:
        job = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )

    def rank_processes():
        assert job.poll() is None, (folder / "output").read_text()
        return {rank: pid for pid, rank in processes(mark).items() if rank is not None}

    wait_until(lambda: len(rank_processes()) == RANKS, 60, "three processes")
    early = chance.random() < 0.25
    if not early:
        wait_until(lambda: begun.exists() and begun.read_text(), 60, "training begins")
        assert int(begun.read_text()) == expected, "not the last complete checkpoint"
    time.sleep(chance.uniform(0, 1))
    number, victim = chance.choice(SIGNALS), chance.randrange(RANKS)
    who = f"rank {victim}"
    if chance.random() < launcher:
        number, who = signal.SIGKILL, "the launcher"
        job.kill()
    else:
        os.kill(rank_processes()[victim], number)
    what = f"{number.name} of {who} {'before' if early else 'in'} training"
    seconds = wait_until(lambda: job.poll() is not None, 10, f"the end after {what}")
    assert job.returncode != 0, what
    # Ranks look for their launcher twice a second once they have imported renga.
    limit = 60 if who == "the launcher" else 2
    wait_until(lambda: not processes(mark), limit, f"no process left after {what}")
    return seconds, what


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    times = []
    before = shared_files()
    with tempfile.TemporaryDirectory() as name:
        for run in range(arguments.runs):
            seconds, what = kill_once(pathlib.Path(name), chance, launcher=0.1)
            times.append(seconds)
            print(f"{run + 1}: {what}: over after {seconds:.2f} s", flush=True)
    left = shared_files() - before
    removed = remove_stale_files(
        age=0
    )  # as the next job does, when they are a minute old
    print(f"{len(left)} files were left, {len(removed)} of ended jobs removed")
    assert shared_files() <= before, shared_files() - before
    times.sort()
    median, longest = times[len(times) // 2], times[-1]
    print(f"{len(times)} kills: median {median:.2f} s, longest {longest:.2f} s")


if __name__ == "__main__":
    main()
