"""An array that comes from another rank while this one does something else."""

from __future__ import annotations

from typing import Any

import numpy as np

from renga.communicators import headers
from renga.communicators.work import Work


class Arrival(Work):
    """Copies what has come into ``out``, if it is what ``out`` is for."""

    def __init__(
        self,
        native: Any,
        head: np.ndarray,
        room: np.ndarray,
        out: np.ndarray,
        source: int,
    ) -> None:
        super().__init__(native, self._accept)
        self._head, self._out = head, out
        self._room: np.ndarray | None = room
        self._source = source

    def _accept(self) -> np.ndarray:
        if not headers.announces(self._head, self._out):
            raise unexpected(self._head, self._out, self._source)
        if self._room is not None:
            np.copyto(self._out, self._room)
            self._room = None
        return self._out

    def wait(self, timeout: float | None = None) -> Any:
        """Waits until it has come and returns ``out``."""
        try:
            return super().wait(timeout)
        except TimeoutError:
            raise
        except Exception as error:
            self._explain(error)
            raise

    def test(self) -> bool:
        """Whether it has come; raises what went wrong."""
        try:
            over = super().test()
        except Exception as error:
            self._explain(error)
            raise
        if over:
            self._accept()
        return over

    def _explain(self, error: Exception) -> None:
        """Names what was sent where it has the wrong size."""
        came = headers.has_come(self._head)
        if came and not headers.announces(self._head, self._out):
            raise unexpected(self._head, self._out, self._source) from error


def check_room(out: Any) -> None:
    """Refuses an ``out`` into which nothing can be received."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"recv: expected out to be a numpy.ndarray, got {type(out)}")
    if not out.flags.c_contiguous:
        raise ValueError(f"recv: expected a contiguous out, strides {out.strides}")
    if not out.flags.writeable:
        raise ValueError("recv: expected an out that may be written to")


def unexpected(head: np.ndarray, out: np.ndarray, source: int) -> TypeError:
    """What to raise where something else than ``out`` is for has come."""
    return TypeError(
        f"recv: expected {out.dtype} {out.shape}, "
        f"got {headers.describe(head)} from rank {source}"
    )
