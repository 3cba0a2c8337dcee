"""Memory that processes share, reserved when it is made, and pickles in it."""

from __future__ import annotations

import errno
import mmap
import os
import pickle
import tempfile
from typing import Any, Callable, NamedTuple


class Handle(NamedTuple):
    """By which other processes of this user find a block: a descriptor of its maker."""

    process: int
    file: int
    inode: tuple[int, int]  # with its device; descriptors are used again
    size: int


class SharedBlock:
    """Bytes that this process and others read and write.

    The block is a file without a name: in memory, or, where the system gives no such
    memory, in /dev/shm or among the temporary files. It is freed with the last process
    that uses it, however that ends. In memory it does not count towards the size of
    /dev/shm. Its pages are reserved; otherwise a full file system would end a process
    by SIGBUS at its first access.

    Args:
        size: in bytes.

    Raises:
        OSError: there is not so much memory, nor space for a file.
    """

    def __init__(self, size: int) -> None:
        self.size = max(size, 1)
        self._file = _reserve(self.size)
        self._map = mmap.mmap(self._file, self.size)
        self.buf = memoryview(self._map)

    @property
    def handle(self) -> Handle:
        """With which ``open_block`` finds it in another process."""
        return Handle(os.getpid(), self._file, _inode(self._file), self.size)

    def close(self) -> None:
        """Frees it, as far as this process is concerned."""
        self.buf.release()
        self._map.close()
        os.close(self._file)


def open_block(handle: Handle) -> memoryview:
    """The bytes of a block of another process, which has to live for this call."""
    with open(f"/proc/{handle.process}/fd/{handle.file}", "r+b") as file:
        if _inode(file.fileno()) != handle.inode:
            raise ValueError("open_block: expected an open block, got a closed one")
        return memoryview(mmap.mmap(file.fileno(), handle.size))


def _inode(file: int) -> tuple[int, int]:
    status = os.fstat(file)
    return status.st_dev, status.st_ino


def _reserve(size: int) -> int:
    """A descriptor of a file of this size."""
    refusals = []
    for place in ("memory", "/dev/shm", tempfile.gettempdir()):
        try:
            file = _create(place)
        except OSError as error:
            refusals.append(f"{place}: {error.strerror}")
            continue
        try:
            os.posix_fallocate(file, 0, size)
            return file
        except OSError as error:
            os.close(file)
            refusals.append(f"{place}: {error.strerror}")
    raise OSError(
        f"MultiprocessIterator: expected {size / 2**20:.1f} MiB that processes can "
        f"share, got {'; '.join(refusals)}"
    )


def _create(place: str) -> int:
    # Python does not have memfd_create() if it was built for an older system.
    if place == "memory" and not hasattr(os, "memfd_create"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if place == "memory":
        return os.memfd_create("renga")
    with tempfile.TemporaryFile(dir=place) as file:
        return os.dup(file.fileno())


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


def write_pickle(
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


def read_pickle(
    written: SharedPickle, block: memoryview | None, copy: bool = True
) -> Any:
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
