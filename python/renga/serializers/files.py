"""Files: opened uniformly, and the error for those that are damaged."""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Iterator
from typing import IO, Union

from renga.serializers.atomic import atomic_write


class FileFormatError(ValueError):
    """A file is damaged or not of the expected format.

    Nothing has been loaded from it: the object is unchanged. The message names the
    file, the position in it and what was expected there.
    """


def name_of(file: object) -> str:
    """The name of a path or a file object in messages."""
    if isinstance(file, (str, bytes, os.PathLike)):
        return os.fsdecode(file)
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else repr(file)


@contextlib.contextmanager
def parsing(
    expected: str, file: object, passing: type[Exception] | tuple[()] = ()
) -> Iterator[None]:
    """Context of a parser: its exceptions become a FileFormatError.

    ``expected`` is the start of the message. Errors of the system (no permission, an
    unreadable disk), MemoryError and ``passing`` are not converted.
    """
    try:
        yield
    except (FileFormatError, MemoryError):
        raise
    except passing:
        raise
    except Exception as error:
        # A parser seeks to an invalid offset read from a damaged file: EINVAL.
        system = isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
        if system:
            raise
        what = str(error) if type(error) is ValueError else f"{error!r}"
        name = name_of(file)
        where = "" if name in expected else f" in {name!r}"
        raise FileFormatError(f"{expected}{where}, got {what}") from error


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
