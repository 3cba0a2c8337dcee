"""Checksums by which ranks compare their parameters without sending them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy

from renga.backends import cuda


def checksum_of(arrays: Iterable[object]) -> int:
    """The CRC-32 of the elements of arrays, in row-major order."""
    value = 0
    for x in arrays:
        value = zlib.crc32(numpy.ascontiguousarray(cuda.to_cpu(x)).data, value)
    return value
