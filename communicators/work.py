"""Communication under way."""

from __future__ import annotations

import math
from typing import Any, Callable


class Work:
    """A communication that goes on while its caller does something else.

    The arrays it reads and writes must be left alone until it is over.
    """

    def __init__(self, native: Any, finish: Callable[[], Any]) -> None:
        self._native = native
        self._finish = finish

    def wait(self, timeout: float | None = None) -> Any:
        """Waits until it is over and returns its result.

        Args:
            timeout: seconds; for ever where it is None, since the communicator's
                own time-out ends a wait in vain.

        Raises:
            TimeoutError: it is not over yet, or another rank stayed away.
            ValueError: ``timeout`` is no number of seconds.
        """
        seconds = _seconds(timeout)
        if self._native is not None:
            self._native.wait(seconds)
        return self._finish()

    def test(self) -> bool:
        """Whether it is over; raises what went wrong."""
        return self._native is None or self._native.test()

    @property
    def error(self) -> BaseException | None:
        """What went wrong so far, or None."""
        try:
            self.test()
        except Exception as error:
            return error
        return None


def _seconds(timeout: float | None) -> float:
    """What the compiled communicator waits for; 0 is for ever there."""
    if timeout is None:
        return 0.0
    seconds = float(timeout)
    if not seconds >= 0:
        raise ValueError(f"wait: expected a time-out of 0 s or more, got {timeout}")
    return 0.0 if math.isinf(seconds) else max(seconds, 1e-9)
