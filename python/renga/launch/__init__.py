"""Starts ranks: from a program that is not one itself, and for ``renga run``."""

from renga.launch.function import launch
from renga.launch.mpiexec import mpiexec_command, mpiexec_environment

__all__ = ["launch", "mpiexec_command", "mpiexec_environment"]
