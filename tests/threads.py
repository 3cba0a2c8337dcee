"""Computations on several numbers of threads: results should have the same bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from renga import _core

Result = TypeVar("Result")


def on_threads(
    compute: Callable[[], Result], counts: Sequence[int] = (1, 2, 3)
) -> list[Result]:
    """What ``compute`` returns on each number of threads."""
    before, results = _core.get_num_threads(), []
    try:
        for threads in counts:
            _core.set_num_threads(threads)
            results.append(compute())
    finally:
        _core.set_num_threads(before)
    return results
