"""Receives that go on in the background."""

from __future__ import annotations

import numpy as np

from renga.communicators.messages import headers
from renga.communicators.native import NativeWork
from renga.communicators.work import Work
from renga.core.types import Array


class PendingReceive(Work):
    """Receives into ``out`` what has its shape and dtype, by the header ``head``."""

    def __init__(
        self, native: NativeWork | None, head: Array, out: Array, source: int
    ) -> None:
        super().__init__(native, lambda: out)
        self._head, self._out, self._source = head, out, source

    def wait(self, timeout: float | None = None) -> Array:
        """Waits until the array has arrived and returns ``out``."""
        try:
            super().wait(timeout)
        except TimeoutError:
            raise
        except Exception as error:
            self._raise_mismatch(error)
            raise
        return self._out

    def test(self) -> bool:
        """Whether the array has arrived; raises the error of the receive."""
        try:
            return super().test()
        except Exception as error:
            self._raise_mismatch(error)
            raise

    def _raise_mismatch(self, error: Exception) -> None:
        """Replaces an error about a size by one about shape and dtype."""
        arrived = headers.has_arrived(self._head)
        if arrived and not headers.describes(self._head, self._out):
            raise mismatch(self._head, self._out, self._source) from error


def check_out(out: Array) -> None:
    """Raises unless ``out`` can be received into."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"recv: expected out to be a numpy.ndarray, got {type(out)}")
    if not out.flags.c_contiguous:
        raise ValueError(f"recv: expected a contiguous out, strides {out.strides}")
    if not out.flags.writeable:
        raise ValueError("recv: expected an out that may be written to")


def mismatch(head: Array, out: Array, source: int) -> TypeError:
    """The error for a message that does not have the shape and dtype of ``out``."""
    return TypeError(
        f"recv: expected {out.dtype} {out.shape}, "
        f"got {headers.describe(head)} from rank {source}"
    )
