"""Files that are replaced whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from typing import IO, Any


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a file for writing that appears under ``path`` only once it is complete.

    The bytes go to a temporary file in the same folder, which is flushed to the disk
    and renamed over ``path`` when the block ends. If the block raises, the temporary
    file is removed and what was at ``path`` before is untouched. A ``path`` that
    exists but is no regular file (``/dev/null``, a pipe) is written in place.

    Raises: ValueError when ``mode`` does not begin with ``w``; OSError as ``open``.
    """
    if not mode.startswith("w"):
        raise ValueError(f"atomic_write: expected a mode that writes, got {mode!r}")
    encoding = None if "b" in mode else "utf-8"
    path = os.path.realpath(path)  # a link stays a link: the file it names is replaced
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, mode, encoding=encoding) as file:
            yield file
        return
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, mode.replace("w", "x"), encoding=encoding) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(path):
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
