"""The error for files that are damaged or of another format."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator


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
