"""Reads safetensors files: a header in JSON, then the bytes of all arrays.

The format is described at https://github.com/huggingface/safetensors.
"""

from __future__ import annotations

import io
import json
import math
import re
import zlib
from typing import IO, Any

import numpy

from renga.serializers.files import parsing
from renga.serializers.stored import Entry

# In the metadata: the CRC-32 of the header (with zeros instead of it) and the rest.
CHECKSUM = "renga.crc32"
_CHECKSUM = re.compile(rb'"renga\.crc32":"(.{8})', re.DOTALL)
_LONGEST_HEADER = 100_000_000  # as in the reference
_MOST_AXES = 64
_BLOCK = 1 << 20
_BFLOAT16 = "BF16"
_DTYPES = {
    "BOOL": "?",
    "U8": "u1",
    "I8": "i1",
    "U16": "<u2",
    "I16": "<i2",
    "F16": "<f2",
    _BFLOAT16: "<u2",
    "U32": "<u4",
    "I32": "<i4",
    "F32": "<f4",
    "U64": "<u8",
    "I64": "<i8",
    "F64": "<f8",
}


def with_checksum(content: bytes) -> bytes:
    """A file's content with the zeros in its metadata replaced by its checksum."""
    start, end = _CHECKSUM.search(content).span(1)  # type: ignore[union-attr]
    return content[:start] + b"%08x" % zlib.crc32(content) + content[end:]


def read_entries(file: IO[bytes], name: object) -> dict[str, Entry]:
    """The arrays of a file that can seek, by name; those of bfloat16 as float32.

    Raises:
        FileFormatError: the file is damaged or of another format.
    """
    with parsing("load_safetensors: expected a safetensors file", name):
        return _entries(file, name)


def _entries(file: IO[bytes], name: Any) -> dict[str, Entry]:
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= min(size - 8, _LONGEST_HEADER):
        raise ValueError(f"a header of {length} bytes in {size}")
    text = file.read(length)
    _check_checksum(file, length.to_bytes(8, "little") + text)
    header = json.loads(
        text.decode(),
        object_pairs_hook=_object,
        parse_int=_integer,
        parse_float=_no,
        parse_constant=_no,
    )
    if not isinstance(header, dict):
        raise ValueError("a header that is no object")
    header.pop("__metadata__", None)
    entries, ranges = {}, []
    for key, field in header.items():
        start, end, entry = _entry(file, name, 8 + length, key, field)
        ranges.append((start, end))
        entries[key] = entry
    position = 0
    for start, end in sorted(ranges):
        if start != position:
            raise ValueError(f"an array at {start}, where {position} comes next")
        position = end
    if 8 + length + position != size:
        raise ValueError(f"{size} bytes where {8 + length + position} are described")
    return entries


def _entry(
    file: IO[bytes], name: Any, first: int, key: str, field: Any
) -> tuple[int, int, Entry]:
    """The range of bytes of an array, and how to read it."""
    kind, shape = field["dtype"], field["shape"]
    start, end = field["data_offsets"]
    numbers = [*shape, start, end]
    if len(shape) > _MOST_AXES or any(type(n) is not int or n < 0 for n in numbers):
        raise ValueError(f"{field} for {key!r}")
    dtype = numpy.dtype(_DTYPES[kind]) if kind in _DTYPES else None
    if start > end or dtype and math.prod(shape) * dtype.itemsize != end - start:
        raise ValueError(f"{end - start} bytes for {shape} of {kind} as {key!r}")

    def read() -> numpy.ndarray:
        with parsing(f"load_safetensors: expected an array called {key!r}", name):
            if dtype is None:
                raise ValueError(f"the dtype {kind}")
            return _read(file, first + start, tuple(shape), dtype, kind)

    # The dtypes that NumPy lacks are floats, too.
    read_as = numpy.dtype("f4") if dtype is None or kind == _BFLOAT16 else dtype
    return start, end, Entry(tuple(shape), read_as, read)


def _read(
    file: IO[bytes], start: int, shape: tuple[int, ...], dtype: numpy.dtype, kind: str
) -> numpy.ndarray:
    count = math.prod(shape)
    file.seek(start)
    data = file.read(count * dtype.itemsize)
    if kind == "BOOL":
        return numpy.frombuffer(data, "u1", count).reshape(shape) != 0
    array = numpy.frombuffer(data, dtype, count).reshape(shape)
    if kind != _BFLOAT16:
        return array
    return (array.astype("u4") << 16).view("f4")


def _check_checksum(file: IO[bytes], head: bytes) -> None:
    """Compares the checksum if the header has one."""
    match = _CHECKSUM.search(head)
    if match is None:
        return
    start, end = match.span(1)
    found = zlib.crc32(head[:start] + b"0" * 8 + head[end:])
    while block := file.read(_BLOCK):
        found = zlib.crc32(block, found)
    if b"%08x" % found != head[start:end]:
        raise ValueError(f"the checksum {found:08x}, not {head[start:end].decode()}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a header with a name twice")
    return members


def _integer(digits: str) -> int:
    if len(digits) > 20:  # more than 64 bits
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _no(number: str) -> Any:
    raise ValueError(f"{number} in a header")
