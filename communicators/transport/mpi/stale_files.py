"""Files that Open MPI does not remove when a job is killed.

Its ranks share memory in files in /dev/shm, and its launcher has a temporary folder.
Both remain if the launcher is killed, or a rank while it starts.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
import time

_SHARED = pathlib.Path("/dev/shm")
_SEGMENTS = ("sm_segment.*", "vader_segment.*")


def remove_stale_files(age: float = 60.0) -> list[str]:
    """Removes this user's files of ended jobs, and returns their names.

    Args:
        age: in seconds, of the files to remove: a job that is starting creates its
            files shortly before it maps them.
    """
    segments = [path for pattern in _SEGMENTS for path in _SHARED.glob(pattern)]
    old = [path for path in segments if _is_mine(path, age)]
    # Most often they belong to this job, and no other process has to be examined.
    used = _mapped_by("self") if old else set()
    if any(str(path) not in used for path in old):
        used |= _mapped_by_all()
    removed = [path for path in old if str(path) not in used]
    for path in removed:
        path.unlink(missing_ok=True)
    for folder in pathlib.Path(tempfile.gettempdir()).glob("ompi.*"):
        number = folder.name.partition(".")[2]
        is_alive = not number.isdigit() or pathlib.Path("/proc", number).exists()
        if not is_alive and _is_mine(folder, age):
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(folder)
    return [str(path) for path in removed]


def _is_mine(path: pathlib.Path, age: float) -> bool:
    try:
        status = path.lstat()
    except OSError:  # removed meanwhile
        return False
    return status.st_uid == os.getuid() and time.time() - status.st_mtime >= age


def _mapped_by(process: str) -> set[str]:
    try:
        lines = pathlib.Path("/proc", process, "maps").read_text().splitlines()
    except (OSError, UnicodeDecodeError):  # ended meanwhile, or of another user
        return set()
    paths = (line.split(maxsplit=5)[5:] for line in lines)
    return {path[0] for path in paths if path and path[0].startswith("/dev/shm/")}


def _mapped_by_all() -> set[str]:
    processes = [name for name in os.listdir("/proc") if name.isdigit()]
    return set().union(*map(_mapped_by, processes))
