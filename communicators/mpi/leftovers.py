"""Files of Open MPI that are left of jobs that were killed.

Open MPI's ranks share memory in files of /dev/shm, and its launcher has a folder. Both
stay where the launcher is killed, or a rank while it starts.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
import time

_SHARED = pathlib.Path("/dev/shm")
_SEGMENTS = ("sm_segment.*", "vader_segment.*")


def remove_leftovers(age: float = 60.0) -> list[str]:
    """Removes this user's files of ended jobs, and returns their names.

    Args:
        age: seconds for which a file has to be there: a job that starts now makes its
            files a moment before it uses them.
    """
    segments = [path for pattern in _SEGMENTS for path in _SHARED.glob(pattern)]
    old = [path for path in segments if _is_mine(path, age)]
    # Mostly they are those of this job, and then no other process is looked at.
    used = _mapped_by("self") if old else set()
    if any(str(path) not in used for path in old):
        used |= _mapped_by_all()
    gone = [path for path in old if str(path) not in used]
    for path in gone:
        path.unlink(missing_ok=True)
    for folder in pathlib.Path(tempfile.gettempdir()).glob("ompi.*"):
        number = folder.name.partition(".")[2]
        alive = not number.isdigit() or pathlib.Path("/proc", number).exists()
        if not alive and _is_mine(folder, age):
            shutil.rmtree(folder, ignore_errors=True)
            gone.append(folder)
    return [str(path) for path in gone]


def _is_mine(path: pathlib.Path, age: float) -> bool:
    try:
        status = path.lstat()
    except OSError:  # it has just gone
        return False
    return status.st_uid == os.getuid() and time.time() - status.st_mtime >= age


def _mapped_by(process: str) -> set[str]:
    try:
        lines = pathlib.Path("/proc", process, "maps").read_text().splitlines()
    except (OSError, UnicodeDecodeError):  # it has just gone, or is not ours
        return set()
    paths = (line.split(maxsplit=5)[5:] for line in lines)
    return {path[0] for path in paths if path and path[0].startswith("/dev/shm/")}


def _mapped_by_all() -> set[str]:
    numbers = [name for name in os.listdir("/proc") if name.isdigit()]
    return set().union(*map(_mapped_by, numbers))
