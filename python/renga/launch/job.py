"""A job of ranks under mpiexec or srun, and the ranks that have called its launcher."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any

from renga.launch.child import child_command
from renga.parallel.elastic.membership import kernel_of_process

_KILL_SECONDS = 10.0  # until a launcher that was asked to end is killed


class Member:
    """A rank, as its launcher sees it.

    Attributes:
        rank: its number.
        is_open: whether its process lives, or may.
        state: the last word of it.
    """

    def __init__(
        self, connection: socket.socket, hello: Mapping[str, str | int]
    ) -> None:
        self.rank = int(hello["rank"])
        self.is_open = True
        self.state = "joined"
        self._connection = connection
        self._pid = int(hello["pid"])
        self._is_here = hello["kernel"] == kernel_of_process() != ""

    @property
    def has_failed(self) -> bool:
        """Whether it has ended without a word."""
        return not self.is_open and self.state not in ("left", "end")

    def send(self, word: str) -> None:
        """Sends a word; what it has been sent after its end is lost."""
        with contextlib.suppress(OSError):
            self._connection.send(f"{word}\n".encode())

    def kill(self) -> None:
        """Ends its process, at once where it runs on this machine."""
        if not self.is_open:
            return
        self.send("die")
        if self._is_here:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)


class LaunchJob:
    """Ranks that one mpiexec has started.

    Output of a job that stands by is kept until it goes.

    Args:
        number: of the job.
        size: how many ranks it has.
        hosts: where they are, in the order of ranks; empty for this machine.
        command: that starts them.
        environment: of the command.
    """

    def __init__(
        self,
        number: int,
        size: int,
        hosts: Mapping[str, int],
        command: Sequence[str],
        environment: Mapping[str, str],
    ) -> None:
        self.number = number
        self.size = size
        self.host_of = [host for host, count in hosts.items() for _ in range(count)]
        self.members: dict[int, Member] = {}
        self.began = time.monotonic()
        self._is_prepared = False
        self._goes = False
        self._killed_at: float | None = None
        self._kept: list[tuple[IO[bytes], bytes]] = []
        self.process = subprocess.Popen(
            child_command(signal.SIGTERM, command),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    @property
    def status(self) -> int | None:
        """With which mpiexec has ended, a signal as a shell writes it."""
        code = self.process.poll()
        return code if code is None or code >= 0 else 128 - code

    @property
    def living(self) -> list[Member]:
        """Its ranks that may still train or write checkpoints."""
        return [m for m in self.members.values() if m.is_open and m.state != "left"]

    @property
    def failed_ranks(self) -> list[int]:
        """Ranks that have ended without a word, in the order of their ends."""
        return [m.rank for m in self.members.values() if m.has_failed]

    @property
    def has_failed(self) -> bool:
        """Whether a rank, or mpiexec, has ended in another way than it should."""
        return bool(self.failed_ranks) or self.status not in (None, 0)

    def is_stuck(self, seconds: float) -> bool:
        """Whether some ranks have not called for so long."""
        is_late = time.monotonic() - self.began > seconds
        return is_late and len(self.members) < self.size and self.status is None

    @property
    def has_left(self) -> bool:
        """Whether all ranks have saved a checkpoint and ended, as they were asked."""
        return self._all_say("left")

    @property
    def is_ready(self) -> bool:
        """Whether all ranks stand by."""
        word = "waiting" if self._is_prepared else "started"
        return self._all_say(word) and not self.has_failed

    def _all_say(self, word: str) -> bool:
        states = [member.state for member in self.members.values()]
        return states == [word] * self.size

    def add(self, connection: socket.socket, hello: Mapping[str, str | int]) -> Member:
        """A rank has called."""
        member = self.members[int(hello["rank"])] = Member(connection, hello)
        if self._killed_at is not None:
            member.kill()
        elif self._goes:
            member.send("go")
        elif self._is_prepared:
            member.send("prepare")
        return member

    def prepare(self) -> None:
        """Lets the ranks run the program, up to ``elastic.run``."""
        if not self._is_prepared:
            self._is_prepared = True
            self.send("prepare")

    def go(self) -> None:
        """Lets the ranks train, and shows what they have written."""
        if self._goes:
            return
        self._goes = True
        self.send("go")
        self.show_kept()

    def send(self, word: str) -> None:
        """Sends a word to all ranks that have called."""
        for member in self.members.values():
            member.send(word)

    def write(self, stream: IO[bytes], text: bytes) -> None:
        """Shows output of the ranks, or keeps it."""
        if self._goes:
            _show(stream, text)
        else:
            self._kept.append((stream, text))

    def show_kept(self) -> None:
        """Shows what the ranks have written so far, also where they never go."""
        for stream, text in self._kept:
            _show(stream, text)
        self._kept.clear()

    def kill(self) -> None:
        """Ends all ranks."""
        for member in self.members.values():
            member.kill()
        if self._killed_at is None and self.status is None:
            self._killed_at = time.monotonic()
            if len(self.members) < self.size or not self._goes:
                self.process.terminate()

    def has_ended(self) -> bool:
        """Whether mpiexec has; one that was killed and does not end is killed again."""
        if self.process.poll() is not None:
            return True
        limit = self._killed_at
        if limit is not None and time.monotonic() - limit > _KILL_SECONDS:
            self.process.kill()
        return False


def hello_of(line: str, token: str) -> dict[str, Any] | None:
    """What a rank says first; None for anybody who is not one of ours."""
    try:
        hello = json.loads(line)
        return hello if hello["token"] == token else None
    except (ValueError, KeyError, TypeError):
        return None


def _show(stream: IO[bytes], text: bytes) -> None:
    # Open MPI pads some lines by null characters.
    stream.write(text.replace(b"\0", b""))
    stream.flush()


def own_streams() -> tuple[IO[bytes], IO[bytes]]:
    """Where output and errors of ranks are shown."""
    return sys.stdout.buffer, sys.stderr.buffer
