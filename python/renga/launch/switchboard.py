"""Where ranks call their launcher, and where it hears what they write."""

from __future__ import annotations

import fcntl
import os
import secrets
import selectors
import socket
import struct
from functools import partial
from types import TracebackType
from typing import Any, Callable

from renga.launch.job import LaunchJob, Member, hello_of, own_streams
from renga.parallel.elastic.membership import VARIABLE

_SIOCGIFADDR = 0x8915
_LONGEST_LINE = 4096
# A rank whose machine has gone is noticed after 5 seconds and 3 tries of 2 seconds.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 5, "TCP_KEEPCNT": 3, "TCP_KEEPINTVL": 2}


class Switchboard:
    """Sockets of ranks and pipes of jobs, in one thread.

    Args:
        is_local: whether all ranks run on this machine.
    """

    def __init__(self, is_local: bool) -> None:
        self._token = secrets.token_hex(16)
        self._jobs: dict[int, LaunchJob] = {}
        self._pipes: dict[int, int] = {}  # open ones of each job, by its number
        self._selector = selectors.DefaultSelector()
        self._addresses = ["127.0.0.1"] if is_local else own_addresses()
        self._server = socket.create_server(("127.0.0.1" if is_local else "", 0))
        self._watch(self._server, self._accept)

    def __enter__(self) -> Switchboard:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    def variable(self, job: int) -> dict[str, str]:
        """What ranks of a job need in their environment to call."""
        words = [job, self._token, self._server.getsockname()[1], *self._addresses]
        return {VARIABLE: ",".join(map(str, words))}

    def add(self, job: LaunchJob) -> None:
        """Hears a job."""
        self._jobs[job.number] = job
        pipes = (job.process.stdout, job.process.stderr)
        self._pipes[job.number] = len(pipes)
        for pipe, stream in zip(pipes, own_streams()):
            assert pipe is not None
            self._watch(pipe, partial(self._hear, job, pipe, stream))

    def is_heard(self, job: LaunchJob) -> bool:
        """Whether a job may still write something."""
        return self._pipes[job.number] > 0

    def serve(self, seconds: float) -> None:
        """Waits for something to happen, at most for so long, and notes it."""
        for key, _ in self._selector.select(seconds):
            key.data()

    def _watch(self, file: Any, act: Callable[[], None]) -> None:
        self._selector.register(file, selectors.EVENT_READ, act)

    def _forget(self, file: Any) -> None:
        self._selector.unregister(file)
        file.close()

    def _hear(self, job: LaunchJob, pipe: Any, stream: Any) -> None:
        text = os.read(pipe.fileno(), 1 << 16)
        if text:
            job.write(stream, text)
        else:
            self._pipes[job.number] -= 1
            self._forget(pipe)

    def _accept(self) -> None:
        connection, _ = self._server.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE.items():
            option = getattr(socket, name, None)  # not every system has them
            if option is not None:
                connection.setsockopt(socket.IPPROTO_TCP, option, value)
        call = _Call(connection, self)
        self._watch(connection, call.read)

    def greet(self, connection: socket.socket, line: str) -> Member | None:
        """The rank that has called; None if it is none of ours."""
        hello = hello_of(line, self._token)
        job = None if hello is None else self._jobs.get(hello["job"])
        return None if job is None or hello is None else job.add(connection, hello)

    def hang_up(self, connection: socket.socket) -> None:
        """Nothing comes any more."""
        self._forget(connection)


class _Call:
    """One connection; nothing is believed before it has the token."""

    def __init__(self, connection: socket.socket, switchboard: Switchboard) -> None:
        self._connection = connection
        self._switchboard = switchboard
        self._text = b""
        self._member: Member | None = None

    def read(self) -> None:
        try:
            text = self._connection.recv(_LONGEST_LINE)
        except OSError:
            text = b""
        *lines, self._text = (self._text + text).split(b"\n")
        for line in lines:
            word = line.decode(errors="replace")
            if self._member is not None:
                self._member.state = word
            else:
                self._member = self._switchboard.greet(self._connection, word)
                if self._member is None:
                    text = b""
                    break
        if not text or len(self._text) > _LONGEST_LINE:
            if self._member is not None:
                self._member.is_open = False
            self._switchboard.hang_up(self._connection)


def own_addresses() -> list[str]:
    """The IPv4 addresses of this machine, by which other hosts may reach it."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode())
            try:
                answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
            except OSError:  # it has none
                continue
            found.append(socket.inet_ntoa(answer[20:24]))
    # Ranks elsewhere would reach themselves.
    return [a for a in found if not a.startswith("127.")] + ["127.0.0.1"]
