"""Which kernels operations run on: shown as they are chosen, kept in files, given back.

An operation that has several kernels, as convolutions have, chooses for each pass and
shape once, by a model of the cost and never by a clock. ``config.show_kernels = True``
prints every choice when it is made.
"""

from __future__ import annotations

import json
import os

from renga import _core
from renga.configuration import config
from renga.serializers.atomic import atomic_write

__all__ = ["choices", "forget", "load", "save"]


def choices() -> dict[str, str]:
    """What has been chosen in this process: kernels by problem."""
    return _core.kernel_choices()


def save(path: str | os.PathLike[str]) -> None:
    """Writes ``choices()`` to a JSON file."""
    with atomic_write(path, "w") as file:
        json.dump(choices(), file, indent=2, sort_keys=True)
        file.write("\n")


def load(path: str | os.PathLike[str]) -> None:
    """Reads what ``save`` wrote; these choices win over the operations' own.

    A run thus computes with another one's kernels, whatever the cost model of its
    version or a changed file says. Problems that the file lacks are chosen as ever.

    Raises: ValueError for a file that does not hold kernels by problem.
    """
    with open(path, "rb") as file:
        text = file.read()
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError):
        loaded = None
    if not isinstance(loaded, dict) or not all(
        isinstance(name, str) for name in loaded.values()
    ):
        raise ValueError(f"kernels.load: expected names of kernels in {path}")
    _core.load_kernel_choices(loaded)


def forget() -> None:
    """Drops all choices, loaded ones too."""
    _core.forget_kernel_choices()


def _show(problem: str, kernel: str) -> None:
    if config.show_kernels:
        print(f"{problem}: {kernel}", flush=True)


_core.observe_kernels(_show)
