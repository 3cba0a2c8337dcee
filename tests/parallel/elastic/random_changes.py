"""Kills ranks at random moments, lets others join, and checks what was trained.

    python -m tests.parallel.elastic.random_changes --kills 200

A job of two to four ranks trains in which each example counts how often it was trained
on (killed_training.py). A rank that is killed is missing until the next checkpoint at
which another one joins. No rank may hang, and at the end every example must have
been counted once in each epoch. The seconds from a kill to the first iteration beyond
the last one are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable

from renga.parallel.elastic import membership

PROGRAM = pathlib.Path(__file__).with_name("killed_training.py")
TIMEOUT = 60.0


class Training:
    """A job under ``renga run``, and what its ranks have written to their log."""

    def __init__(self, folder: pathlib.Path, ranks: str, restarts: int) -> None:
        self.folder = folder
        self._stop = folder / "stop"
        command = [sys.executable, "-m", "renga", "run", "-n", ranks]
        command += ["--restarts", str(restarts), str(PROGRAM), str(folder)]
        self._output = folder / "output"
        with open(self._output, "wb") as output:
            self.job = subprocess.Popen(
                command,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def notes(self, kind: str) -> list[dict[str, Any]]:
        """Lines of the log with a key; one that is being written is left out."""
        log = self.folder / "log"
        lines = log.read_text().split("\n")[:-1] if log.exists() else []
        return [note for note in map(json.loads, lines) if kind in note]

    def until(self, found: Callable[[], Any], what: str) -> Any:
        """The first true result of ``found``."""
        begun = time.monotonic()
        while time.monotonic() - begun < TIMEOUT:
            result = found()
            if result:
                return result
            assert self.job.poll() is None, self.output()
            time.sleep(0.005)
        raise AssertionError(f"{what}: not within {TIMEOUT} s\n{self.output()}")

    def output(self) -> str:
        """What the ranks and the launcher have written."""
        return self._output.read_text(errors="replace").replace("\0", "")

    def kill_once(
        self, chance: random.Random, launcher: float = 0.0
    ) -> tuple[float, str]:
        """Kills a rank of those that train, or sometimes their mpiexec.

        Returns:
            The seconds until training has gone on, 0 if none was killed; and what
            was done.
        """
        self.until(lambda: self.notes("step"), "an iteration")
        time.sleep(chance.uniform(0, 1))
        last = self.notes("step")[-1]
        job, ranks = last["job"], last["ranks"]
        pids = {n["rank"]: n["pid"] for n in self.notes("begun") if n["job"] == job}
        victim = chance.randrange(ranks)
        number = chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGSEGV])
        who, pid = f"rank {victim}", pids[victim]
        if chance.random() < launcher:
            who, pid = "mpiexec", job
        what = f"{number.name} of {who} of {ranks} ranks"
        killed = time.time()
        try:
            os.kill(pid, number)
        except ProcessLookupError:  # it has just left
            return 0.0, "none"

        # One may have begun before the signal, if this job was leaving.
        def later_jobs() -> list[int]:
            jobs = list(dict.fromkeys(n["job"] for n in self.notes("begun")))
            return jobs[jobs.index(job) + 1 :]

        later = self.until(later_jobs, f"a job after {what}")
        before = max(n["step"] for n in self.notes("step") if n["job"] == job)

        def further() -> list[dict[str, Any]]:
            steps = [n for n in self.notes("step") if n["job"] in later]
            return [n for n in steps if n["step"] > before and n["time"] > killed]

        new = self.until(further, f"training after {what}")[0]
        return new["time"] - killed, f"{what}, {new['ranks']} went on"

    def finish(self) -> None:
        """Lets training end, and checks what it has counted."""
        self._stop.touch()
        assert self.job.wait(TIMEOUT) == 0, self.output()
        end = self.notes("end")[-1]
        check_counts(end["count"], end["samples"])

    def end(self) -> None:
        """Ends a job that may still run."""
        if self.job.poll() is None:
            self.job.terminate()
            self.job.wait(30)


def check_counts(counts: list[float], samples: int) -> None:
    """Every example was trained on once in each epoch, and no batch is missing."""
    assert sum(counts) == samples, (sum(counts), samples)
    epochs = samples // len(counts)
    assert set(counts) <= {epochs, epochs + 1}, counts


def processes_left() -> list[str]:
    """Ranks of any such job."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            text = (entry / "environ").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if f"{membership.VARIABLE}=".encode() in text and b"PMIX_RANK=" in text:
            found.append(entry.name)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-n", "--ranks", default="2:4")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    times = []
    with tempfile.TemporaryDirectory() as name:
        training = Training(pathlib.Path(name), arguments.ranks, arguments.kills)
        try:
            while len(times) < arguments.kills:
                seconds, what = training.kill_once(chance, launcher=0.1)
                if seconds:
                    times.append(seconds)
                    print(f"{len(times)}: {what} after {seconds:.2f} s", flush=True)
            training.finish()
        finally:
            training.end()
    times.sort()
    print(
        f"{len(times)} kills: median {times[len(times) // 2]:.2f} s, longest "
        f"{times[-1]:.2f} s; every epoch had each example once"
    )


if __name__ == "__main__":
    main()
