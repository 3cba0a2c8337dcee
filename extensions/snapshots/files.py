"""The snapshots in a directory whose names fit a format."""

from __future__ import annotations

import contextlib
import os
import re
import string


def find_snapshots(filename: str, outdir: str | os.PathLike[str]) -> list[str]:
    """Paths of the files whose names ``filename`` can format, from old to new.

    Files of the same time are in the order of the numbers in their names.
    """
    fields = string.Formatter().parse(filename)
    pattern = re.compile(
        "".join(re.escape(text) + _values(name, spec) for text, name, spec, _ in fields)
    )
    with contextlib.ExitStack() as stack:
        try:
            entries = stack.enter_context(os.scandir(outdir))
        except FileNotFoundError:
            return []
        found = []
        for entry in entries:
            hidden = entry.name.startswith(".") and entry.name.endswith(".tmp")
            if hidden or not pattern.fullmatch(entry.name):
                continue
            with contextlib.suppress(FileNotFoundError):  # another rank may remove it
                if entry.is_file():
                    time = entry.stat().st_mtime_ns
                    found.append((time, _numbers(entry.name), entry.path))
    return [path for _, _, path in sorted(found)]


def _values(name: str | None, spec: str | None) -> str:
    """What a field of a format can become, as a regular expression."""
    if name is None:
        return ""
    if name.endswith((".iteration", ".epoch")) or (spec or "").endswith("d"):
        return r" *-?\d+"  # so that a copy with another ending is no snapshot
    return ".+"


def _numbers(name: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", name)]


def remove_old_snapshots(
    filename: str, outdir: str | os.PathLike[str], n_retains: int
) -> None:
    """Removes all but the ``n_retains`` newest snapshots."""
    for path in find_snapshots(filename, outdir)[:-n_retains]:
        with contextlib.suppress(FileNotFoundError):  # another rank may remove it
            os.remove(path)
