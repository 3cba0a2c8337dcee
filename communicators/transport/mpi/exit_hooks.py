"""Hooks that end or inform the other ranks of an MPI job when a process exits."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from types import FrameType, ModuleType, TracebackType

from renga.utils.exceptions import traceback_of

_installed = False


def install(native: ModuleType) -> bool:
    """Makes an uncaught exception end the whole job.

    Its traceback is printed with the rank before each line. SIGTERM becomes
    SystemExit, so that files are closed; the exit code then ends the job too. A
    process that exits without an error sends a shutdown notice, so that ranks that
    wait for it fail at once. A process forked from this one ends alone.

    Returns:
        Whether this is the first call.
    """
    global _installed
    if _installed:
        return False
    _installed = True
    process = os.getpid()
    previous = sys.excepthook, threading.excepthook

    def end_job(error: BaseException | None) -> None:
        try:
            with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
                sys.stdout.flush()
            sys.stderr.write(tagged_traceback(error, native.rank()))
            sys.stderr.flush()
        finally:
            native.abort(1)

    def on_exception(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if os.getpid() != process:
            previous[0](kind, error, trace)
        else:
            end_job(error)

    def on_thread_exception(args: threading.ExceptHookArgs) -> None:
        if os.getpid() != process:
            previous[1](args)
        elif args.exc_type is not SystemExit:
            end_job(args.exc_value)

    atexit.register(native.shut_down)
    sys.excepthook = on_exception
    threading.excepthook = on_thread_exception
    in_main = threading.current_thread() is threading.main_thread()
    if in_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _raise_exit)
        # A forked worker may ignore SystemExit; ending its pool would then hang.
        os.register_at_fork(after_in_child=_restore_sigterm)
    return True


def tagged_traceback(error: BaseException | None, rank: int) -> str:
    """The traceback of an exception, with the rank before each line."""
    if error is None:
        return ""
    lines = traceback_of(error).splitlines()
    return "".join(f"[rank {rank}] {line}\n" for line in lines)


def _restore_sigterm() -> None:
    if signal.getsignal(signal.SIGTERM) is _raise_exit:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _raise_exit(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
