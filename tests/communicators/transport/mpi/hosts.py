"""Simulated hosts: network namespaces linked to one switch.

Each has an address and a name of its own. Open MPI starts its daemons on them with a
remote agent that enters the namespace, so that ranks talk over TCP as between machines.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence

from renga.launch import mpiexec_command, mpiexec_environment

_numbers = itertools.count()

# The longest packet that TCP gives to an interface, with room for the headers of the
# frames into which a wire would cut it.
PACKET_BYTES = 80_000

# What a host runs is told its name as uname sees it.
_AGENT = """#!/bin/sh
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
"""


def missing() -> str:
    """Why there can be no hosts here; empty where there can."""
    if os.geteuid() != 0:
        return "needs to be root"
    absent = [name for name in ("ip", "tc", "unshare") if shutil.which(name) is None]
    if absent:
        return f"needs {', '.join(absent)}"
    probe = f"renga-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True)
    if made.returncode != 0:
        return "may not make network namespaces"
    subprocess.run(["ip", "netns", "delete", probe], check=True)
    return ""


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Hosts:
    """Some hosts on one switch."""

    def __init__(self, count: int, folder: pathlib.Path) -> None:
        # What is deleted takes a moment to go: no name comes twice.
        self._mark = f"{os.getpid() % 10**6}-{next(_numbers)}"
        self.names = [f"h{i}-{self._mark}" for i in range(count)]
        self._switch = f"sw{self._mark}"
        self._agent = folder / "agent"
        self._agent.write_text(_AGENT)
        self._agent.chmod(self._agent.stat().st_mode | stat.S_IXUSR)

    def _connect(self) -> None:
        _ip("link", "add", self._switch, "type", "bridge")
        _ip("link", "set", self._switch, "up")
        for i, name in enumerate(self.names):
            port = f"p{i}-{self._mark}"
            _ip("netns", "add", name)
            cable = ["link", "add", port, "type", "veth", "peer", "name", "eth0"]
            _ip(*cable, "netns", name)
            _ip("link", "set", port, "master", self._switch, "up")
            _ip("-n", name, "address", "add", f"10.199.0.{i + 1}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")

    def _disconnect(self) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)
        subprocess.run(["ip", "link", "delete", self._switch], capture_output=True)

    def limit(self, megabits: int) -> None:
        """Lets each host send at most ``megabits`` per second.

        What may go at once is one packet of 64 KiB with its headers, or what the rate
        lets through in half a millisecond: short messages are slow too. If it were less
        than such a packet, the kernel would cut each into frames, which costs two cores
        more than four links of 1 Gbit/s allow.
        """
        burst = max(PACKET_BYTES, megabits * 60)
        for name in self.names:
            words = ["ip", "netns", "exec", name, "tc", "qdisc", "replace", "dev"]
            words += ["eth0", "root", "tbf", "rate", f"{megabits}mbit"]
            words += ["burst", str(burst), "latency", "100ms"]
            subprocess.run(words, check=True)

    def run(
        self,
        program: str,
        *arguments: str,
        ranks_each: int | Sequence[int] = 1,
        timeout: float = 100,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a Python program on every host, started from the first."""
        if isinstance(ranks_each, int):
            ranks_each = [ranks_each] * len(self.names)
        ranks = sum(ranks_each)
        places = ",".join(f"{name}:{n}" for name, n in zip(self.names, ranks_each))
        environment = mpiexec_environment(ranks)
        python_path = os.pathsep.join(p or os.getcwd() for p in sys.path)
        environment.update(PYTHONPATH=python_path, OMP_NUM_THREADS="1")
        environment.setdefault("RENGA_TIMEOUT", "60")
        exported = [
            word
            for name in environment
            if name.startswith(("RENGA_", "OMP_", "PYTHON"))
            for word in ("-x", name)
        ]
        command = [*mpiexec_command(ranks), "--host", places, *exported]
        command += [sys.executable, program, *arguments]
        return self.start(command, environment, timeout)

    def start(
        self, command: list[str], environment: dict[str, str], timeout: float = 100
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command on the first host, from which mpiexec reaches the others."""
        line = " ".join(f"'{word}'" for word in command)
        return subprocess.run(
            [str(self._agent), self.names[0], line],
            env={**environment, "PRTE_MCA_plm_ssh_agent": str(self._agent)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
        )


@contextlib.contextmanager
def hosts(count: int, folder: pathlib.Path) -> Iterator[Hosts]:
    """``count`` hosts for a while."""
    made = Hosts(count, folder)
    try:
        made._connect()
        yield made
    finally:
        made._disconnect()
