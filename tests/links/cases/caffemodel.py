"""Writes caffemodel files, by the wire format and the field numbers of caffe.proto."""

import struct

import numpy


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*out, n])


def field(number, value):
    """One field: an int, a float, a string, or bytes that are a message."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(*fields):
    return b"".join(field(number, value) for number, value in fields)


def blob(array, old=False):
    if old:
        shape = (1,) * (4 - array.ndim) + array.shape
        head = message(*enumerate(shape, 1))
    else:
        head = field(7, message(*((1, n) for n in array.shape)))
    return head + field(5, array.astype("<f4").tobytes())


def layer(kind, name="l", bottom=("x",), top=("y",), blobs=(), **params):
    """``params`` are messages by their number, as ``p106``."""
    return field(
        100,
        message(
            (1, name),
            (2, kind),
            *((3, b) for b in bottom),
            *((4, t) for t in top),
            *((7, blob(numpy.asarray(b))) for b in blobs),
            *((int(number[1:]), value) for number, value in params.items()),
        ),
    )


def old_layer(kind, name="l", bottom=("x",), top=("y",), blobs=(), **params):
    return field(
        2,
        message(
            *((2, b) for b in bottom),
            *((3, t) for t in top),
            (4, name),
            (5, kind),
            *((6, blob(numpy.asarray(b), old=True)) for b in blobs),
            *((int(number[1:]), value) for number, value in params.items()),
        ),
    )
