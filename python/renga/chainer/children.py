"""The alias in processes that multiprocessing starts afresh."""

from __future__ import annotations

import multiprocessing
from multiprocessing import spawn
from typing import Any


class _Alias:
    """Installs the alias in the process that reads it from a pipe."""

    def __reduce__(self) -> tuple[Any, ...]:
        from renga.chainer.finder import install

        return install, ()


def inherit_alias() -> None:
    """Has spawned processes, and those of the fork server, install the alias first.

    What such a process is told to prepare is read before it imports the main module.
    """
    prepare = spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        return {"renga.chainer": _Alias(), **prepare(name)}

    spawn.get_preparation_data = get_preparation_data
    # The server itself would import the main module, without being told anything.
    if "forkserver" in multiprocessing.get_all_start_methods():
        multiprocessing.set_forkserver_preload(["renga.chainer.preload"])
