"""The connection of a rank to the launcher that restarts its job.

Both send words, one a line. The rank begins with who it is; then:

=========  ==========================================================================
launcher   prepare: run the program up to ``elastic.run``; go: train;
           leave: save a checkpoint and end, a job of another size stands by;
           die: another rank has failed
rank       started: it could run the program; waiting: in ``elastic.run``, to train;
           left: as it was asked to; end: the program has come to its end
=========  ==========================================================================
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from typing import IO

# Job, token, port and addresses, with commas between them.
VARIABLE = "RENGA_LAUNCHER"
_CONNECT_SECONDS = 5.0


def kernel_of_process() -> str:
    """What processes share that can send each other signals by their numbers."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


class Membership:
    """A connected rank. A thread of it listens to the launcher.

    Args:
        text: what ``RENGA_LAUNCHER`` says.

    Raises:
        ConnectionError: no launcher answers.
    """

    def __init__(self, text: str) -> None:
        job, token, port, *addresses = text.split(",")
        self._socket = _connect(addresses, int(port))
        self._lock = threading.Lock()
        self._may_prepare = threading.Event()
        self._may_train = threading.Event()
        self._is_asked_to_leave = False
        self._has_left = False
        hello = {
            "job": int(job),
            "token": token,
            "rank": int(os.environ["PMIX_RANK"]),
            "pid": os.getpid(),
            "kernel": kernel_of_process(),
        }
        self._send(json.dumps(hello))
        listener = threading.Thread(target=self._listen, name="launcher", daemon=True)
        listener.start()

    @property
    def is_asked_to_leave(self) -> bool:
        """Whether the job is to end after its next checkpoint."""
        return self._is_asked_to_leave

    def wait_for_program(self) -> None:
        """Returns when the program may run, to ``elastic.run`` at least."""
        self._send("started")
        self._may_prepare.wait()

    def wait_for_training(self) -> None:
        """Returns when the job is the one that trains."""
        self._send("waiting")
        self._may_train.wait()

    def leave(self) -> None:
        """Tells that this rank has saved its part, and ends."""
        self._has_left = True
        self._send("left")

    def end(self) -> None:
        """Tells that the program has come to its end without an error."""
        if not self._has_left:
            self._send("end")

    def _send(self, line: str) -> None:
        with self._lock:
            self._socket.sendall(f"{line}\n".encode())

    def _listen(self) -> None:
        try:
            with self._socket.makefile("r") as lines:
                self._obey(lines)
        except OSError:
            pass  # as if it had closed the connection
        sys.stderr.write("the launcher of this job has ended, this rank ends too\n")
        os._exit(1)

    def _obey(self, lines: IO[str]) -> None:
        for line in lines:
            word = line.strip()
            if word == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            self._is_asked_to_leave |= word == "leave"
            if word == "go":
                self._may_train.set()
            if word in ("prepare", "go"):
                self._may_prepare.set()


def _connect(addresses: list[str], port: int) -> socket.socket:
    errors = []
    for address in addresses:
        try:
            made = socket.create_connection((address, port), _CONNECT_SECONDS)
        except OSError as error:
            errors.append(f"{address}: {error}")
            continue
        made.settimeout(None)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made
    raise ConnectionError(
        f"renga run: a rank expected its launcher at port {port}, got {errors}"
    )


_current: Membership | None = None


def join() -> Membership:
    """Connects this process, once.

    Raises:
        ConnectionError: no launcher answers.
    """
    global _current
    if _current is None:
        _current = Membership(os.environ.pop(VARIABLE))
    return _current


def current() -> Membership | None:
    """The connection of this process; None if no launcher would restart its job."""
    return _current
