"""CUDA devices by number, where CuPy is not installed."""

from __future__ import annotations

import sys
import threading

from renga import _core


class Device:
    """A CUDA device; as a context, the one on which a thread makes arrays."""

    def __init__(self, device: int | Device | None = None) -> None:
        if device is None:
            device = current_device()
        self.id = int(device)
        count: int = sys.modules["renga._cuda"].count()
        if not 0 <= self.id < count:
            raise RuntimeError(f"cuda: expected a device below {count}, got {self.id}")
        self._before: list[int] = []

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    def __enter__(self) -> Device:
        self._before.append(current_device().id)
        self.use()
        return self

    def __exit__(self, *args: object) -> None:
        _current.id = self._before.pop()

    def use(self) -> None:
        """Makes it the device on which this thread makes arrays."""
        _current.id = self.id

    def synchronize(self) -> None:
        """Waits until everything that was started on it is done."""
        _core.synchronize(f"cuda:{self.id}")


def number_of(variable: _core.Variable) -> int:
    """Of the device whose memory a Variable is in."""
    return int(variable.device_name.partition(":")[2] or 0)


class _Current(threading.local):
    id = 0


_current = _Current()


def current_device() -> Device:
    """The device on which this thread makes arrays."""
    return Device(_current.id)
