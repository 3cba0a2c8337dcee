"""Pickles with their arrays in shared memory, read by other processes in place."""

from __future__ import annotations

import pickle
from typing import Any, Callable, NamedTuple

_ALIGNMENT = 64  # bytes


class SharedPickle(NamedTuple):
    """A pickled object and the positions of its arrays in a block of shared memory.

    Arrays that did not fit into the block are in ``inline``.
    """

    payload: bytes
    extents: list[tuple[int, int]]  # offset and bytes
    inline: list[bytes] | None

    @property
    def size(self) -> int:
        """The size in bytes of a block that holds the object."""
        return self.extents[-1][0] + self.extents[-1][1] if self.extents else 0


def write(
    obj: object, block: memoryview | None, dumps: Callable[..., bytes] = pickle.dumps
) -> SharedPickle:
    """Pickles ``obj``, its arrays into ``block`` if they fit."""
    buffers: list[pickle.PickleBuffer] = []
    payload = dumps(obj, protocol=5, buffer_callback=buffers.append)
    views = [buffer.raw() for buffer in buffers]
    extents, offset = [], 0
    for view in views:
        extents.append((offset, view.nbytes))
        offset += -(-view.nbytes // _ALIGNMENT) * _ALIGNMENT
    written = SharedPickle(payload, extents, None)
    if block is None or written.size > block.nbytes:
        return written._replace(inline=[bytes(view) for view in views])
    for view, (start, length) in zip(views, extents):
        block[start : start + length] = view
    return written


def read(written: SharedPickle, block: memoryview | None, copy: bool = True) -> Any:
    """The object; without ``copy`` its arrays are read-only views of ``block``."""
    if written.inline is not None:
        return pickle.loads(written.payload, buffers=map(bytearray, written.inline))
    views = []
    if block is not None:
        memory = block.toreadonly()
        views = [memory[start : start + length] for start, length in written.extents]
    return pickle.loads(
        written.payload, buffers=map(bytearray, views) if copy else views
    )
