"""Communication in flight."""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, NamedTuple

from renga.communicators.native import NativeWork


class Report(NamedTuple):
    """When a collective ran in the background, and what this rank sent in it.

    Times are nanoseconds of ``time.perf_counter_ns``.
    """

    begin: int
    end: int
    messages: int
    bytes: int


class Work:
    """A communication that goes on while its caller does something else.

    The arrays that it reads and writes must not be touched until it is complete.
    """

    def __init__(self, native: NativeWork | None, result: Callable[[], object]) -> None:
        self._native = native
        self._result = result

    def wait(self, timeout: float | None = None) -> Any:
        """Waits until it is complete and returns its result.

        Args:
            timeout: in seconds; None for no limit besides the communicator's
                own time-out.

        Raises:
            TimeoutError: if it is not complete by then, or another rank did not
                take part.
            ValueError: if ``timeout`` is not a number of seconds.
        """
        seconds = _native_timeout(timeout)
        if self._native is not None:
            self._native.wait(seconds)
        return self._result()

    def then(self, function: Callable[..., object]) -> Work:
        """This communication, with ``function(result)`` as its result.

        The thread that waits for it computes the result, at its first ``wait``.
        """
        return _ContinuedWork(self, function)

    def test(self) -> bool:
        """Whether it is complete; raises its error."""
        return self._native is None or self._native.test()

    def report(self) -> Report | None:
        """How a collective in the background went, once it is complete.

        None for messages, and for what the caller has done itself.
        """
        report = getattr(self._native, "report", None)
        found = None if report is None else report()
        return None if found is None else Report(*found)

    @property
    def error(self) -> BaseException | None:
        """The error that has occurred so far, or None."""
        try:
            self.test()
        except Exception as error:
            return error
        return None


class _ContinuedWork(Work):
    """Another communication, whose result is computed further once."""

    def __init__(self, first: Work, function: Callable[[Any], Any]) -> None:
        self._first = first
        self._compute = functools.cache(lambda: function(first.wait()))

    def wait(self, timeout: float | None = None) -> Any:
        self._first.wait(timeout)
        return self._compute()

    def test(self) -> bool:
        return self._first.test()

    def report(self) -> Report | None:
        return self._first.report()


def _native_timeout(timeout: float | None) -> float:
    """The time-out of the compiled communicator, for which 0 means none."""
    if timeout is None:
        return 0.0
    seconds = float(timeout)
    if not seconds >= 0:
        raise ValueError(f"wait: expected a time-out of 0 s or more, got {timeout}")
    return 0.0 if math.isinf(seconds) else max(seconds, 1e-9)
