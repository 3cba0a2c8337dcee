"""The alias in processes spawned by multiprocessing."""

from __future__ import annotations

import multiprocessing
from multiprocessing import spawn
from typing import Any, Callable


class _Alias:
    """Installs the alias in the process that unpickles it."""

    def __init__(self, install: Callable[[], None]) -> None:
        self._install = install

    def __reduce__(self) -> tuple[Any, ...]:
        return self._install, ()


def inherit_alias(install: Callable[[], None]) -> None:
    """Makes spawned processes, and those of the fork server, call ``install`` first.

    A process reads its preparation data before it imports the main module.
    """
    prepare = spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        return {"renga.chainer": _Alias(install), **prepare(name)}

    spawn.get_preparation_data = get_preparation_data
    # The fork server imports the main module itself, without preparation data.
    if "forkserver" in multiprocessing.get_all_start_methods():
        multiprocessing.set_forkserver_preload(["renga.chainer.preload"])
