"""Checks of numbers from the caller, such as sizes before arrays are allocated."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable

from renga import _core
from renga.core.types import DTypeLike

# Products of two numbers of a window must fit into 63 bits.
_WINDOW_END = 2**31
# Arrays have at most 16 axes; images need two of them for samples and channels.
MOST_IMAGE_AXES = 14


def check_integer(name: str, what: str, value: object) -> int:
    """``value`` as an int; TypeError if it is not an integer."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"{name}: expected an integer as {what}, got {value!r}"
        ) from None


def check_real(name: str, what: str, value: object) -> float:
    """``value`` as a float; TypeError if it is not a real number.

    It may be NaN, or infinite, as integers are that no float can hold.
    """
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]
    raise TypeError(f"{name}: expected a number as {what}, got {value!r}") from None


def check_count(
    name: str, what: str, value: object, least: int = 1, most: int | None = None
) -> int:
    """An integer; TypeError for other types, ValueError if it is out of range."""
    value = check_integer(name, what, value)
    if value < least:
        raise ValueError(f"{name}: expected {what} of {least} or more, got {value}")
    if most is not None and value > most:
        raise ValueError(f"{name}: expected {what} of {most} or less, got {value}")
    return value


def check_counts(
    name: str, what: str, values: object, n: int | None = None, least: int = 1
) -> tuple[int, ...]:
    """``n`` integers; ValueError if there are more or less, else as ``check_count``."""
    if is_number(values):
        raise TypeError(f"{name}: expected integers as {what}, got {values!r}")
    counts: tuple[object, ...] = tuple(values)  # type: ignore[arg-type]
    if n is not None and len(counts) != n:
        raise ValueError(f"{name}: expected {n} integers as {what}, got {counts}")
    return tuple(check_count(name, what, value, least) for value in counts)


def check_sizes(link: object, **sizes: object) -> None:
    """Checks the sizes and shapes of which a link makes parameters; None is unknown.

    Raises:
        TypeError: they are not integers.
        ValueError: one is negative.
    """
    for what, size in sizes.items():
        if size is not None:
            size = (size,) if is_number(size) else size
            check_counts(type(link).__name__, what, size, least=0)


def check_window(name: str, n: int, **options: object) -> list[tuple[int, ...]]:
    """The options of a window (ksize, stride, pad, dilate) as ``n`` integers each.

    Each is given as one number for all axes or as a sequence.

    Raises:
        TypeError: they are not integers.
        ValueError: there are more or fewer than ``n``; a number is 0 or less, a
            ``pad`` below 0, or any 2^31 or more.
    """
    checked = []
    for what, values in options.items():
        values = (values,) * n if is_number(values) else values
        numbers = check_counts(name, what, values, n, 0 if what == "pad" else 1)
        if max(numbers, default=0) >= _WINDOW_END:
            raise ValueError(f"{name}: expected {what} below 2^31, got {numbers}")
        checked.append(numbers)
    return checked


def check_memory(
    name: str, shape: Iterable[object], dtype: DTypeLike
) -> tuple[int, ...]:
    """The extents of a new array.

    Raises:
        TypeError: they are not integers.
        ValueError: one is negative.
        MemoryError: the array would be larger than the memory of this machine.
    """
    extents = tuple(check_integer(name, "an extent", extent) for extent in shape)
    _core.require_memory(name, extents, dtype)  # type: ignore[arg-type]
    return extents


def is_number(x: object) -> bool:
    """Whether ``x`` is a scalar, not a sequence; NumPy's scalars can be indexed."""
    return not hasattr(x, "__getitem__") or getattr(x, "ndim", 1) == 0
