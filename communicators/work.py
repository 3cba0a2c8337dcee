"""Communication under way."""

from __future__ import annotations

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
        """
        if self._native is not None:
            self._native.wait(timeout or 0.0)
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
