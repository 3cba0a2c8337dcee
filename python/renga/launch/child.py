"""Becomes a program that ends with the process that has started it.

``python child.py SIGNAL PROGRAM ARGUMENTS…``: the program gets the signal, a number,
when its parent has ended in whatever way. Rank 0 of mpiexec also reads mpiexec's
standard input. It imports nothing of renga, to begin at once.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1


def child_command(number: signal.Signals, command: Sequence[str]) -> list[str]:
    """A command that becomes ``command``, and gets a signal when its parent ends."""
    return [sys.executable, "-I", "-S", __file__, str(int(number)), *command]


def end_with_parent(number: int) -> None:
    """Asks the kernel for a signal to this process when its parent has ended."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # before it was asked
        os.kill(os.getpid(), number)


def open_stdin() -> None:
    """Opens an empty standard input for a program that this process becomes, if needed.

    Otherwise another file of that program would have the number of its input.
    """
    try:
        os.fstat(0)
    except OSError:
        os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)


def take_stdin_of_parent() -> None:
    """Reads what mpiexec was given to read, instead of what mpiexec sends.

    mpiexec never sends the end of a file. Only a terminal is read by mpiexec, since a
    rank is not in the foreground.
    """
    parent = f"/proc/{os.getppid()}"
    flags = os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK  # a FIFO may have no writer
    try:
        file = os.open(f"{parent}/fd/0", flags)
        if not os.isatty(file):
            os.set_blocking(file, True)
            _seek(file, f"{parent}/fdinfo/0")
            os.dup2(file, 0)
        os.close(file)
    except OSError:  # a socket, or a process of another user
        pass


def _seek(file: int, info: str) -> None:
    """Goes to where the other descriptor of a file is."""
    with open(info) as lines:
        position = int(next(lines).split()[1])
    if position > 0:
        os.lseek(file, position, os.SEEK_SET)


def main(number: str, *command: str) -> None:
    """Replaces this process by ``command``."""
    end_with_parent(int(number))
    if os.environ.get("OMPI_COMM_WORLD_RANK") == "0":
        take_stdin_of_parent()
    open_stdin()
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python
        signal.signal(ignored, signal.SIG_DFL)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
