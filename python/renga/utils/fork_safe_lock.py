"""A lock that forked processes can take."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_made: weakref.WeakSet[ForkSafeLock] = weakref.WeakSet()


class ForkSafeLock:
    """A reentrant lock, which is free in a process that is forked.

    There, a thread that held it does not exist, and would never release it.
    """

    def __init__(self) -> None:
        self._lock: Any = threading.RLock()
        self._held: list[Any] = []
        _made.add(self)

    def __enter__(self) -> None:
        lock = self._lock
        lock.acquire()
        self._held.append(lock)

    def __exit__(self, *_: object) -> None:
        # The thread that forks may hold the lock of before.
        self._held.pop().release()


def _renew_locks() -> None:
    for each in list(_made):
        each._lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_locks)
