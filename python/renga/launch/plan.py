"""How ranks are started: by which program, with which environment."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from renga.launch import rank, slurm
from renga.launch.arguments import Count, fill, written
from renga.launch.child import child_command
from renga.launch.mpiexec import exports, mpiexec_command, mpiexec_environment


@dataclass(frozen=True)
class LaunchPlan:
    """A program and where its ranks run.

    Attributes:
        program: arguments of Python: a script or ``-m`` and a module, and its own.
        count: of ranks.
        hosts: the ranks that each takes; empty for this machine.
        by_srun: whether Slurm starts the ranks.
    """

    program: Sequence[str]
    count: Count
    hosts: Mapping[str, int] = field(default_factory=dict)
    by_srun: bool = False

    def ranks_by_host(self, ranks: int, without: Sequence[str] = ()) -> dict[str, int]:
        """The number of ranks on each host; empty for this machine."""
        usable = {h: n for h, n in self.hosts.items() if h not in without}
        return fill(usable, ranks)

    def command(
        self,
        ranks: int,
        program: Sequence[str],
        hosts: Mapping[str, int],
        environment: Mapping[str, str],
    ) -> list[str]:
        """The command line that starts ``ranks`` processes of ``python program``.

        Args:
            environment: that it will have.

        Raises:
            ImportError: there is no mpiexec.
        """
        if self.by_srun:
            command = slurm.srun_command(ranks, hosts)
            command += ["--label"] * (self.count.most > 1)
        else:
            command = mpiexec_command(ranks, hosts)
            command += ["--output", "rank"] if self.count.most > 1 else []
            command += exports(environment) if hosts else []
        bind = [sys.executable, rank.__file__]
        run = [*bind, sys.executable, "-u", *program]
        return [*command, *child_command(signal.SIGKILL, run)]

    def environment(self) -> dict[str, str]:
        """What mpiexec or srun needs; each rank counts its own cores."""
        environment = mpiexec_environment(1)
        if "OMP_NUM_THREADS" not in os.environ:
            del environment["OMP_NUM_THREADS"]
        # A rank writes to a terminal of mpiexec's, whose cursor cannot be moved.
        environment["TERM"] = "dumb"
        return environment

    def describe(self, ranks: int, hosts: Mapping[str, int]) -> str:
        """What is started, in one line."""
        name = self.program[1 if self.program[0] == "-m" else 0]
        where = written(hosts) if hosts else "this machine"
        if self.by_srun and not hosts:
            where = f"allocation {os.environ['SLURM_JOB_ID']}"
        by = "srun" if self.by_srun else "mpiexec"
        cores = ""
        if not (hosts or self.by_srun):
            usable = len(os.sched_getaffinity(0))
            share = usable // ranks  # 0: several ranks on a core
            count = share or usable
            cores = f", {count} core{'s'[: count > 1]}"
            cores += " each" if share and ranks > 1 else ""
        return f"{name}: {ranks} rank{'s'[: ranks > 1]} on {where}{cores}, by {by}"
