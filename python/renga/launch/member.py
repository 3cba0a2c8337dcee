"""Runs a program as a rank of a job that can be restarted.

``python -m renga.launch.member SCRIPT ARGUMENTS…``, or ``-m MODULE ARGUMENTS…``. A job
that stands by has imported renga, and has run the program up to ``elastic.run``.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
import zipfile

from renga.parallel.elastic import membership


def main(program: list[str]) -> None:
    """Runs the program once the launcher lets it."""
    own = membership.join()
    with contextlib.suppress(ImportError):  # it says so when it is needed
        from renga import _communicators_mpi  # noqa: F401
    own.wait_for_program()
    try:
        run_program(program)
    except SystemExit as exit:
        if not exit.code:
            own.end()
        raise
    own.end()


def run_program(program: list[str]) -> None:
    """Runs ``-m MODULE …`` or ``SCRIPT …`` as ``__main__``, as Python does."""
    is_module = program[0] == "-m"
    sys.argv = program[is_module:]
    name = sys.argv[0]
    if is_module:
        sys.path[0] = os.getcwd()
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    elif os.path.isdir(name) or zipfile.is_zipfile(name):
        del sys.path[0]  # runpy puts the folder or the archive there
        runpy.run_path(name, run_name="__main__")
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(name))
        runpy.run_path(name, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
