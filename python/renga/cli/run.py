"""Starts a script on several ranks.

The ranks share the cores of this machine. Each line of output begins with the rank
that wrote it. If a rank fails, all others are ended, and its status is returned.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys

from renga.cli import rank
from renga.launch import mpiexec_command, mpiexec_environment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of ``renga run``."""
    parser.add_argument("-n", "--ranks", type=int, default=2, help="2 unless given")
    parser.add_argument(
        "-m", "--module", action="store_true", help="script is the name of a module"
    )
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)


def main(chosen: argparse.Namespace) -> int:
    """Runs the script to its end; the status of the first rank that failed, or 0."""
    try:
        _check(chosen)
        command = mpiexec_command(chosen.ranks)
    except (ImportError, ValueError) as error:
        print(f"renga run: {error}", file=sys.stderr)
        return 2
    if chosen.ranks > 1:
        command += ["--output", "rank"]
    command += [sys.executable, str(pathlib.Path(rank.__file__)), sys.executable]
    command += ["-u", *["-m"] * chosen.module, chosen.script, *chosen.arguments]
    environment = mpiexec_environment(chosen.ranks)
    # A rank writes to a terminal of mpiexec's, whose cursor cannot be moved.
    environment["TERM"] = "dumb"
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, check=False
    )
    # A signal that ended mpiexec, as a shell writes it.
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


def _check(chosen: argparse.Namespace) -> None:
    if chosen.ranks < 1:
        raise ValueError(f"expected at least one rank, got {chosen.ranks}")
    if not chosen.module and not pathlib.Path(chosen.script).is_file():
        raise ValueError(f"expected a script, got {chosen.script!r}: no such file")
