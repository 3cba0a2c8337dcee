"""Algorithm selection: which kernels operations use, printed, saved and loaded.

An operation with several kernels, such as a convolution, selects one for each pass and
shape once, by a cost model and never by timing. ``config.show_kernels = True`` prints
every selection.
"""

from __future__ import annotations

import json

from renga import _core
from renga.core.configuration import config
from renga.core.types import Path
from renga.serializers.atomic import atomic_write

__all__ = ["choices", "forget", "load", "save"]


def choices() -> dict[str, str]:
    """The selections made in this process: kernels by problem."""
    return _core.kernel_choices()


def save(path: Path) -> None:
    """Writes ``choices()`` to a JSON file."""
    with atomic_write(path, "w") as file:
        json.dump(choices(), file, indent=2, sort_keys=True)
        file.write("\n")


def load(path: Path) -> None:
    """Reads what ``save`` wrote; these override the operations' own selections.

    A run thus uses the kernels of another one, whatever its own cost model would
    select. Problems that the file lacks are selected as usual.

    Raises:
        ValueError: the file does not hold kernels by problem.
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
    """Drops all selections, loaded ones too."""
    _core.forget_kernel_choices()


def _show(problem: str, kernel: str) -> None:
    if config.show_kernels:
        print(f"{problem}: {kernel}", flush=True)


_core.observe_kernels(_show)
