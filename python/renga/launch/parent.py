"""Runs a program, hands signals on to it, and ends with the status that a shell gives.

``python parent.py PROGRAM ARGUMENTS…``: if a signal asked it to end, the status is 128
and the signal's number, whatever the program makes of it; mpiexec returns 1. It imports
nothing of renga, to begin at once.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

_ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
_HANDED_ON = {*_ENDING, signal.SIGUSR1, signal.SIGUSR2}
_SI_KERNEL = 0x80  # of a terminal's signals, which reach all processes of its job


def parent_command(command: Sequence[str]) -> list[str]:
    """A command that runs ``command`` and hands signals on to it."""
    return [sys.executable, "-I", "-S", __file__, *command]


def main(*command: str) -> int:
    """The status of ``command``, or that of the signal that has ended it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    waited = {n for n in _HANDED_ON if signal.getsignal(n) is not signal.SIG_IGN}
    waited.add(signal.SIGCHLD)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    process = os.posix_spawnp(command[0], command, os.environ, setsigmask=before)
    asked = None
    while True:
        info = signal.sigwaitinfo(waited)
        if info.si_signo == signal.SIGCHLD:
            found, status = os.waitpid(process, os.WNOHANG)
            if found:
                code = os.waitstatus_to_exitcode(status)
                code = 128 - code if code < 0 else code
                return code if asked is None else 128 + asked
            continue
        if info.si_signo in _ENDING:
            asked = info.si_signo
        if info.si_code != _SI_KERNEL:
            os.kill(process, info.si_signo)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
