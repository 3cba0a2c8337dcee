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
        "".join(
            re.escape(literal) + ("" if field is None else ".+")
            for literal, field, _, _ in fields
        )
    )
    with contextlib.ExitStack() as stack:
        try:
            entries = stack.enter_context(os.scandir(outdir))
        except FileNotFoundError:
            return []
        found = [
            (entry.stat().st_mtime_ns, _numbers(entry.name), entry.path)
            for entry in entries
            if pattern.fullmatch(entry.name)
            and entry.is_file()
            and not (entry.name.startswith(".") and entry.name.endswith(".tmp"))
        ]
    return [path for _, _, path in sorted(found)]


def _numbers(name: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", name)]


def remove_old_snapshots(
    filename: str, outdir: str | os.PathLike[str], n_retains: int
) -> None:
    """Removes all but the ``n_retains`` newest snapshots."""
    for path in find_snapshots(filename, outdir)[:-n_retains]:
        with contextlib.suppress(FileNotFoundError):  # another rank may remove it
            os.remove(path)
