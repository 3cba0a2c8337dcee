"""The alias in processes spawned by multiprocessing."""

from __future__ import annotations

import multiprocessing
from multiprocessing import spawn
from typing import Any


class _Alias:
    """Installs the alias in the process that unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        # finder imports this module.
        from renga.chainer.finder import install

        return install, ()


def inherit_alias() -> None:
    """Makes spawned processes, and those of the fork server, install the alias first.

    A process reads its preparation data before it imports the main module.
    """
    prepare = spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        return {"renga.chainer": _Alias(), **prepare(name)}

    spawn.get_preparation_data = get_preparation_data
    # The fork server imports the main module itself, without preparation data.
    if "forkserver" in multiprocessing.get_all_start_methods():
        multiprocessing.set_forkserver_preload(["renga.chainer.preload"])
