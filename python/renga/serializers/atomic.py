"""Atomic replacement of files."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from typing import IO, Any

_LONGEST_NAME = 255  # bytes, on all usual file systems


@contextlib.contextmanager
def atomic_write(
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes], mode: str = "wb"
) -> Iterator[IO[Any]]:
    """Open a file for writing that appears under ``path`` only once it is complete.

    The bytes go to a temporary file in the same folder, which is flushed to the disk
    and renamed over ``path`` when the block ends; then the folder is flushed, too. If
    the block raises, the temporary file is removed and what was at ``path`` before is
    untouched. Of several concurrent writers, the last one's file remains, complete. A
    ``path`` that exists but is no regular file (``/dev/null``, a pipe) is written in
    place.

    Raises:
        ValueError: ``mode`` does not begin with ``w``.
        OSError: the file cannot be written.
    """
    if not mode.startswith("w"):
        raise ValueError(f"atomic_write: expected a mode that writes, got {mode!r}")
    encoding = None if "b" in mode else "utf-8"
    # A symbolic link is kept: the file that it points to is replaced.
    path = os.path.realpath(os.fsdecode(path))
    if os.path.islink(path):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, mode, encoding=encoding) as file:
            yield file
        return
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
    temporary = _temporary_name(path)
    try:
        with open(temporary, mode.replace("w", "x"), encoding=encoding) as file:
            yield file
        flush_to_disk(temporary)
        if os.path.exists(path):
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    flush_to_disk(folder)


def _temporary_name(path: str) -> str:
    folder, name = os.path.split(path)
    end = f".{os.urandom(4).hex()}.tmp"
    name = os.fsdecode(os.fsencode(name)[: _LONGEST_NAME - 1 - len(end)])
    return os.path.join(folder, f".{name}{end}")


def flush_to_disk(path: str) -> None:
    """Flushes ``path`` to the disk, also if another handle wrote it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot flush folders.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP) or os.path.isfile(path):
            raise
    finally:
        os.close(descriptor)
