"""Arrays repeated."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_arrays
from renga.utils.extents import check_count, check_memory


def tile(x: ArrayLike, reps: int | tuple[int, ...]) -> Variable:
    """``x`` repeated as a block along each of the last axes.

    Raises:
        TypeError: ``reps`` is neither an integer nor a tuple of them.
        ValueError: a number below 0.
        MemoryError: the result would not fit in memory.
    """
    check_arrays("tile", x)
    given = reps if isinstance(reps, tuple) else (reps,)
    times = tuple(check_count("tile", "reps", t, 0) for t in given)
    times = (1,) * (x.ndim - len(times)) + times
    shape = (1,) * (len(times) - x.ndim) + x.shape
    pairs = list(zip(times, shape))
    extents = check_memory("tile", (t * extent for t, extent in pairs), x.dtype)
    y = _core.ops.reshape(x, [n for _, extent in pairs for n in (1, extent)])
    y = _core.ops.broadcast_to(y, [n for pair in pairs for n in pair])
    return _core.ops.reshape(y, extents)
