"""Starts a script on several ranks.

The ranks share the cores of their machines. Each line of output begins with the rank
that wrote it. If a rank fails, all others are ended, and its status is returned; with
--restarts the script is started again, and goes on from its last checkpoint.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import signal
import sys
from typing import NoReturn

from renga.launch import rank, slurm
from renga.launch.arguments import Count, parse_hosts, parse_ranks
from renga.launch.child import child_command
from renga.launch.parent import parent_command
from renga.launch.plan import LaunchPlan
from renga.launch.supervisor import supervise

# A job whose number of ranks may change restarts so often by default.
_RESTARTS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of ``renga run``."""
    parser.add_argument(
        "-n",
        "--ranks",
        metavar="N",
        help="number of ranks, or MIN:MAX; by default as many as there are slots on "
        "the hosts or in the allocation of Slurm, elsewhere 2",
    )
    parser.add_argument(
        "--hosts",
        metavar="A:2,B:2",
        help="machines, and how many ranks each of them takes",
    )
    parser.add_argument(
        "--restarts",
        type=int,
        metavar="N",
        help="how often to go on after a failure; 0 unless given, with MIN:MAX "
        f"{_RESTARTS}",
    )
    parser.add_argument(
        "-m", "--module", action="store_true", help="script is the name of a module"
    )
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)


def main(chosen: argparse.Namespace) -> int:
    """Runs the script to its end; the status of the first rank that failed, or 0."""
    program = [*["-m"] * chosen.module, chosen.script, *chosen.arguments]
    try:
        _check_script(chosen)
        if slurm.is_rank():
            _become_rank(chosen, program)
        plan = _plan(chosen, program)
        restarts = _restarts(chosen, plan.count)
        if restarts or plan.count.most > plan.count.least:
            return supervise(plan, restarts)
        _run(plan)
    except (ImportError, ValueError) as error:
        print(f"renga run: {error}", file=sys.stderr)
        return 2


def _run(plan: LaunchPlan) -> NoReturn:
    ranks = plan.count.most
    hosts = plan.ranks_by_host(ranks)
    environment = plan.environment()
    command = plan.command(ranks, plan.program, hosts, environment)
    print(f"renga run: {plan.describe(ranks, hosts)}", file=sys.stderr, flush=True)
    _become(command, environment)


def _become(command: list[str], environment: dict[str, str]) -> NoReturn:
    """Runs what waits for mpiexec in place of this process."""
    with contextlib.suppress(AttributeError):  # there is none
        sys.stdout.flush()
    waiting = parent_command(child_command(signal.SIGTERM, command))
    os.execve(waiting[0], waiting, environment)


def _plan(chosen: argparse.Namespace, program: list[str]) -> LaunchPlan:
    hosts = {} if chosen.hosts is None else parse_hosts(chosen.hosts)
    slots = sum(hosts.values())
    by_srun = slurm.starts_ranks()
    if chosen.ranks is None:
        allocated = slurm.ranks_of_allocation() if by_srun else None
        count = Count(*[slots or allocated or 2] * 2)
    else:
        count = parse_ranks(chosen.ranks)
    if hosts and count.most > slots:
        raise ValueError(
            f"-n: expected at most {slots} ranks on {chosen.hosts}, got {count.most}"
        )
    return LaunchPlan(program, count, hosts, by_srun)


def _restarts(chosen: argparse.Namespace, count: Count) -> int:
    if chosen.restarts is None:
        return _RESTARTS if count.most > count.least else 0
    if chosen.restarts < 0:
        raise ValueError(f"--restarts: expected 0 or more, got {chosen.restarts}")
    return int(chosen.restarts)


def _check_script(chosen: argparse.Namespace) -> None:
    if chosen.module:
        return
    path = pathlib.Path(chosen.script)
    if not path.exists():
        raise ValueError(f"expected a script, got {chosen.script!r}: no such file")
    if path.is_dir() and not (path / "__main__.py").exists():
        raise ValueError(
            f"expected a script, got the folder {chosen.script!r} without __main__.py"
        )


def _become_rank(chosen: argparse.Namespace, program: list[str]) -> None:
    """Runs the script in place of this process, which is a rank already."""
    if chosen.ranks or chosen.hosts or chosen.restarts:
        raise ValueError(
            "this process is a rank already, started by mpiexec or srun: expected no "
            "-n, --hosts or --restarts"
        )
    sys.stdout.flush()
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    rank.main([sys.executable, *program])
