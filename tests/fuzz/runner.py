"""Runs trials in child processes: a crash, a hang or out of memory ends one child."""

from __future__ import annotations

import collections
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

SECONDS_PER_TRIAL = 60.0
SECONDS_TO_START = 60.0


def environment() -> dict[str, str]:
    """With the tests among the modules, and few threads."""
    path = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    changes = {"OMP_NUM_THREADS": "2", "PYTHONPATH": os.pathsep.join(path)}
    return os.environ | changes


class Child:
    """A process that makes the trials ``first``, ``first + step``, …"""

    def __init__(self, seed: int, first: int, step: int, name: str) -> None:
        command = [
            sys.executable,
            "-m",
            "tests.fuzz.worker",
            str(seed),
            str(first),
            str(step),
            name,
        ]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        self.unread = b""
        self.next = first
        self.limit = time.monotonic() + SECONDS_TO_START

    @property
    def output(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def lines(self) -> list[bytes] | None:
        """What came since the last time; None if the child is gone."""
        new = os.read(self.output.fileno(), 2**16)
        if not new:
            return None
        *lines, self.unread = (self.unread + new).split(b"\n")
        return lines

    def end(self) -> str:
        """Ends it; the last lines that it wrote to its standard error."""
        self.process.kill()
        _, errors = self.process.communicate()
        return "\n".join(errors.decode().strip().split("\n")[-6:])


class Campaign:
    """Trials of one seed in several processes, and what they found.

    Args:
        name: The function that is called; "" for any.
    """

    def __init__(self, seed: int, processes: int, name: str = "") -> None:
        self.seed, self.processes, self.name = seed, processes, name
        self.calls = self.trials = 0
        self.faults: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)

    def run(self, seconds: float, trials: int | None = None) -> None:
        self.limit = trials
        end = time.monotonic() + seconds
        children = [self.child(i) for i in range(self.processes)]
        try:
            while time.monotonic() < end and not self.enough():
                ready = select.select([c.output for c in children], [], [], 0.5)[0]
                for i, child in enumerate(children):
                    if child.output in ready:
                        alive = self.read(child)
                    else:
                        alive = time.monotonic() < child.limit
                    if not alive:
                        children[i] = self.replace(child)
        finally:
            for child in children:
                child.end()

    def child(self, first: int) -> Child:
        return Child(self.seed, first, self.processes, self.name)

    def enough(self) -> bool:
        return self.limit is not None and self.trials >= self.limit

    def read(self, child: Child) -> bool:
        """Takes what the child wrote; False if it is gone."""
        lines = child.lines()
        for message in map(json.loads, lines or []):
            child.limit = time.monotonic() + SECONDS_PER_TRIAL
            child.next = message["next"]
            self.calls += message["calls"]
            self.trials += 1
            for finding in message["findings"]:
                self.add(finding)
        return lines is not None

    def replace(self, child: Child) -> Child:
        """Says how the child ended and starts another after the trial it was at."""
        code = child.process.poll()
        if code is None:
            time.sleep(0.2)  # it may be gone and not yet collected
            code = child.process.poll()
        errors = child.end()
        if code == 0:
            return self.child(child.next)
        if code is None:
            fault = f"hangs for {SECONDS_PER_TRIAL:.0f} s"
        elif code < 0:
            fault = f"ends with {signal.Signals(-code).name}"
        else:
            fault = f"ends with status {code}"
        name, text = described(self.seed, child.next, self.name)
        if not self.repeats(child.next):
            fault += ", but not alone"
        key = f"{name}: {fault}"
        text += "".join(f"\n    {line}" for line in errors.split("\n"))
        self.add(dict(key=key, name=name, fault=fault, number=child.next, text=text))
        return self.child(child.next + self.processes)

    def repeats(self, number: int) -> bool:
        """Whether a trial ends a process that makes nothing else."""
        command = [sys.executable, "-m", "tests.fuzz", "--seed", str(self.seed)]
        command += ["--only", str(number), "--name", self.name]
        try:
            done = subprocess.run(
                command,
                env=environment(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=SECONDS_PER_TRIAL,
            )
        except subprocess.TimeoutExpired:
            return True
        return done.returncode not in (0, 1)

    def add(self, finding: dict[str, Any]) -> None:
        known = self.faults[finding["key"]]
        known.append(finding)
        if len(known) == 1:
            print(self.line(finding), flush=True)

    def line(self, finding: dict[str, Any]) -> str:
        command = f"python -m tests.fuzz --seed {self.seed} --only {finding['number']}"
        command += f" --name {self.name}" if self.name else ""
        return f"{finding['text']}\n    {finding['fault']}\n    {command}"

    def report(self) -> None:
        print(f"\n{self.trials} trials, {self.calls} calls, seed {self.seed}")
        for key, found in sorted(self.faults.items()):
            print(f"{len(found):6d} {key}")


def described(seed: int, number: int, name: str) -> tuple[str, str]:
    """The function and the text of a trial, drawn but not run."""
    from .check import Trial

    trial = Trial(seed, number, name)
    trial.draw()
    return trial.case.name, trial.text()
