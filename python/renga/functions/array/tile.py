"""Arrays repeated."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.variable import Variable


def tile(x: Any, reps: int | tuple[int, ...]) -> Variable:
    """The whole of ``x`` so many times along each of the last axes.

    Raises:
        TypeError: ``reps`` is neither an integer nor a tuple of them.
        ValueError: a number below 0.
    """
    times = reps if isinstance(reps, tuple) else (reps,)
    if not all(isinstance(t, int) for t in times):
        raise TypeError(f"tile: expected integers as reps, got {reps!r}")
    if any(t < 0 for t in times):
        raise ValueError(f"tile: expected reps of 0 or more, got {reps}")
    times = (1,) * (x.ndim - len(times)) + times
    shape = (1,) * (len(times) - x.ndim) + x.shape
    pairs = list(zip(times, shape))
    y = _core.ops.reshape(x, [n for _, extent in pairs for n in (1, extent)])
    y = _core.ops.broadcast_to(y, [n for pair in pairs for n in pair])
    return _core.ops.reshape(y, [t * extent for t, extent in pairs])
