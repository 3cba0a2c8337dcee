"""Payloads in one message."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from renga.core.types import Array

_ALIGNMENT = 8


class PackedPayloads:
    """The payloads of several parameters as bytes.

    All ranks send the same number of bytes.

    Raises:
        TypeError: if a payload is not a sequence of arrays.
    """

    def __init__(self, payloads: Sequence[Sequence[Array]]) -> None:
        self._layout = [
            [(x.shape, x.dtype) for x in checked_payload(p)] for p in payloads
        ]
        parts: list[Array] = []
        for x in (x for payload in payloads for x in payload):
            parts.append(numpy.ascontiguousarray(x).reshape(-1).view(numpy.uint8))
            parts.append(numpy.zeros(-x.nbytes % _ALIGNMENT, numpy.uint8))
        self.bytes = numpy.concatenate(parts) if parts else numpy.zeros(0, numpy.uint8)

    def unpack(self, row: Array) -> list[tuple[Array, ...]]:
        """The payloads in a message of a rank, as views of it."""
        payloads, begin = [], 0
        for layout in self._layout:
            arrays = []
            for shape, dtype in layout:
                size = int(numpy.prod(shape, dtype=numpy.int64)) * dtype.itemsize
                arrays.append(row[begin : begin + size].view(dtype).reshape(shape))
                begin += size + -size % _ALIGNMENT
            payloads.append(tuple(arrays))
        return payloads


def checked_payload(payload: Sequence[Array]) -> Sequence[Array]:
    if not isinstance(payload, (list, tuple)) or not all(
        isinstance(x, numpy.ndarray) and not x.dtype.hasobject for x in payload
    ):
        raise TypeError(
            "Compressor.encode: expected a list or tuple of arrays of numbers, got "
            f"{type(payload).__name__}"
        )
    return payload
