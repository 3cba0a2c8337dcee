"""What loading raises where a file is damaged or not of the format expected."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from typing import Any


class FileFormatError(ValueError):
    """A file is damaged, or not of the format that was expected.

    Nothing has been loaded from it: the object is as it was before. The message names
    the file, the part of it and what was expected there.
    """


def name_of(file: Any) -> str:
    """How messages call a path or a file object."""
    if isinstance(file, (str, bytes, os.PathLike)):
        return os.fsdecode(file)
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else repr(file)


@contextlib.contextmanager
def parsing(
    expected: str, file: Any, passing: type[Exception] | tuple[()] = ()
) -> Iterator[None]:
    """Context of a parser: whatever it raises becomes a FileFormatError.

    ``expected`` says by whom and what. Errors of the system (no permission, a disk that
    cannot be read) pass, as do a lack of memory and ``passing``.
    """
    try:
        yield
    except (FileFormatError, MemoryError):
        raise
    except passing:
        raise
    except Exception as error:
        # A parser seeks to where a damaged file tells it to, which is EINVAL.
        system = isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
        if system:
            raise
        what = str(error) if type(error) is ValueError else f"{error!r}"
        name = name_of(file)
        where = "" if name in expected else f" in {name!r}"
        raise FileFormatError(f"{expected}{where}, got {what}") from error
