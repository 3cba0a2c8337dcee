"""The program ``renga``: starts ranks, describes and examines the machine."""

from __future__ import annotations

import argparse
import pathlib

from renga import _core
from renga.cli import demo, doctor, info, plan, report, run


def main(arguments: list[str] | None = None) -> int:
    """Runs one of the commands; the status with which the program exits."""
    parser = argparse.ArgumentParser(prog="renga", description=__doc__)
    version = f"renga {_core.__version__}"
    parser.add_argument("--version", action="version", version=version)
    parser.add_argument(
        "--cmakedir",
        action="version",
        version=str(pathlib.Path(_core.__file__).parent / "cmake"),
        help="print where find_package(renga) of CMake finds it, and exit",
    )
    commands = parser.add_subparsers(metavar="command", required=True)
    for module in (run, info, doctor, plan, report, demo):
        name = module.__name__.rpartition(".")[2]
        text = (module.__doc__ or "").splitlines()[0]
        command = commands.add_parser(name, help=text, description=module.__doc__)
        module.add_arguments(command)
        command.set_defaults(main=module.main)
    chosen = parser.parse_args(arguments)
    return int(chosen.main(chosen))
