"""When numbers are the same."""

from __future__ import annotations

from typing import Any

import numpy

RELATIVE = {"e": 2e-2, "f": 2e-4, "d": 1e-7}
BFLOAT16 = 6e-2
# So much may be left in float16 where numbers near 1 cancel, over the error accepted.
CANCELLED = 0.1


def precision(*dtypes: Any) -> float:
    """The error accepted where these dtypes take part."""
    errors = [RELATIVE.get(numpy.dtype(d).char, 0.0) for d in dtypes]
    return max(errors, default=0.0)


def differ(found: Any, expected: Any, error: float, least: float = 1e-3) -> str | None:
    """What is different, or None.

    ``error`` is relative to the largest number, at least ``least``.
    """
    expected = numpy.asarray(expected)
    if found is None:
        return "None"
    if found.dtype == "e":
        least = max(least, CANCELLED)
    if found.shape != expected.shape:
        return f"shape {found.shape}, expected {expected.shape}"
    if found.dtype.kind in "OmM":  # NaN is like NaN, and NumPy swaps no bytes of times
        same = repr(found.tolist()) == repr(expected.tolist())
        return None if same else f"{found!r}, expected {expected!r}"
    if found.dtype.kind not in "f" or expected.dtype.kind not in "fiub":
        if numpy.array_equal(found, expected, equal_nan=found.dtype.kind == "c"):
            return None
        return first_difference(found, expected, found != expected)
    with numpy.errstate(all="ignore"):
        bad = unlike(found, expected.astype("d"), error, least)
    return first_difference(found, expected, bad) if bad.any() else None


def unlike(found: Any, expected: Any, error: float, least: float) -> Any:
    error = min(error, 0.3)
    limit = float(numpy.finfo(found.dtype).max)
    found = found.astype("d")
    overflows = abs(expected) > limit * (1 - 2 * error - 1e-7)
    finite = numpy.isfinite(expected)
    largest = numpy.max(abs(expected), initial=0, where=finite & ~overflows)
    scale = min(float(largest), 1e3) + abs(numpy.where(finite, expected, 0)) + least
    same = numpy.where(
        finite,
        abs(found - expected) <= error * scale,
        (found == expected) | (numpy.isnan(found) & numpy.isnan(expected)),
    )
    at_limit = overflows & (numpy.sign(found) == numpy.sign(expected))
    return ~(same | (at_limit & (abs(found) > limit * 0.5)))


def first_difference(found: Any, expected: Any, bad: Any) -> str:
    place = tuple(int(i) for i in numpy.argwhere(bad)[0]) if bad.ndim else ()
    return f"{found[place]!r} at {place}, expected {expected[place]!r}"
