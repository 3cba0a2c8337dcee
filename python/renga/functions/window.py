"""The windows that convolutions and poolings slide over images: their options."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from renga.core.types import ArrayLike, Extents, Operand
from renga.core.variable import Variable
from renga.functions.check import check_axes
from renga.utils.conv_nd import as_tuple
from renga.utils.extents import is_number

Function = TypeVar("Function", bound=Callable[..., Any])


class Window(NamedTuple):
    """The window of a convolution, one number per axis: the core's ``Window``."""

    stride: tuple[int, ...]
    pad: tuple[int, ...]
    dilate: tuple[int, ...]
    groups: int


class PoolingWindow(NamedTuple):
    """The window of a pooling, one number per axis: the core's ``PoolingWindow``."""

    ksize: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]


def as_pair(x: Extents, name: str = "_pair", what: str = "x") -> tuple[int, int]:
    """(rows, columns) of the option ``what`` of the operation ``name``.

    It is given as one number for both or as a pair.

    Raises:
        ValueError: there are more or fewer than two.
    """
    if type(x) is tuple and len(x) == 2:  # mostly
        return x
    if type(x) is int or is_number(x):
        return x, x  # type: ignore[return-value]
    pair = tuple(x)  # type: ignore[arg-type]
    if len(pair) != 2:
        raise ValueError(
            f"{name}: expected {what} as a number or a pair (rows, columns), got {x!r}"
        )
    return pair


def window_2d(
    name: str, stride: Extents, pad: Extents, dilate: Extents, groups: int
) -> Window:
    """The window of a convolution of images; ValueError for other than two axes."""
    return Window(
        as_pair(stride, name, "stride"),
        as_pair(pad, name, "pad"),
        as_pair(dilate, name, "dilate"),
        groups,
    )


def window_nd(
    name: str, n: int, stride: Extents, pad: Extents, dilate: Extents, groups: int
) -> Window:
    """The window of a convolution over ``n`` axes; AssertionError for others."""
    return Window(
        as_tuple(stride, n, name, "stride"),
        as_tuple(pad, n, name, "pad"),
        as_tuple(dilate, n, name, "dilate"),
        groups,
    )


def pooling_window_2d(
    name: str, ksize: Extents, stride: Extents | None, pad: Extents
) -> PoolingWindow:
    """The window of a pooling of images; ``stride`` is ``ksize`` if None."""
    size = as_pair(ksize, name, "ksize")
    step = size if stride is None else as_pair(stride, name, "stride")
    return PoolingWindow(size, step, as_pair(pad, name, "pad"))


def over_axes(n: int, name: str, function: Function) -> Function:
    """``function`` of any number of axes, as the function ``name`` of ``n`` axes.

    Its first argument is x of (N, C, d1, …, dn); ValueError for other numbers of axes.
    """

    @functools.wraps(function)
    def call(x: ArrayLike, *args: Operand, **kwargs: object) -> Variable:
        check_axes(name, x, n)
        return function(x, *args, **kwargs)

    axes = ", ".join(["d"] if n == 1 else [f"d{i + 1}" for i in range(n)])
    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"``{function.__name__}`` of (N, C, {axes}).\n\n"
        "Raises:\n    ValueError: ``x`` has another number of axes."
    )
    return call  # type: ignore[return-value]
