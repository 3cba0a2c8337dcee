"""Opens paths and file objects uniformly."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from typing import IO, Union

from renga.serializers.atomic import atomic_write

File = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]", IO[bytes]]


def is_path(file: object) -> bool:
    """Whether ``file`` is a path, and not an open file."""
    return isinstance(file, (str, bytes, os.PathLike))


@contextlib.contextmanager
def open_to_read(file: File) -> Iterator[IO[bytes]]:
    """A seekable binary file: opened, given, or a copy of a given stream's content.

    Raises:
        OSError: the file cannot be opened.
        TypeError: a text file object.
    """
    if is_path(file):
        with open(file, "rb") as opened:  # type: ignore[arg-type]
            # A pipe may have a path, too.
            yield opened if opened.seekable() else io.BytesIO(opened.read())
        return
    if isinstance(file, io.TextIOBase) or not hasattr(file, "read"):
        raise TypeError(f"expected a path or a binary file object, got {file!r}")
    seekable = getattr(file, "seekable", None)
    if seekable is not None and seekable():
        yield file  # type: ignore[misc]
    else:
        yield io.BytesIO(file.read())  # type: ignore[union-attr]


@contextlib.contextmanager
def open_to_write(file: File) -> Iterator[IO[bytes]]:
    """A binary file: a path is replaced atomically, an open file is written.

    Raises:
        OSError: the file cannot be opened.
        TypeError: a text file object.
    """
    if is_path(file):
        with atomic_write(file) as opened:  # type: ignore[arg-type]
            yield opened
    elif isinstance(file, io.TextIOBase) or not hasattr(file, "write"):
        raise TypeError(f"expected a path or a binary file object, got {file!r}")
    else:
        yield file  # type: ignore[misc]
