"""Prints the versions of renga and its libraries, the machine and its MPI."""

from __future__ import annotations

import argparse
import subprocess

from renga._runtime.runtime_info import print_runtime_info
from renga.communicators.transport.mpi.mpi_communicator import native_mpi
from renga.launch import mpiexec_command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``renga info`` has no options."""


def main(chosen: argparse.Namespace) -> int:
    """Prints the description; returns 0."""
    print_runtime_info()
    print(f"MPI: {_mpi()}")
    return 0


def _mpi() -> str:
    """The version of mpiexec, or what is missing."""
    try:
        native_mpi()
        command = [mpiexec_command(1)[0], "--version"]
    except ImportError as error:
        return f"not available ({error})"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = (done.stdout or done.stderr).splitlines()
    return f"{lines[0] if lines else 'unknown version'}, {command[0]}"
