"""Largest element of windows."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy

from renga import _core
from renga._core import Variable
from renga.core.around_call import overridable, reads_elements
from renga.core.types import Array, ArrayLike, Extents
from renga.functions.check import check_axes
from renga.functions.window import pooling_window_2d


@overload
def max_pooling_2d(
    x: ArrayLike,
    ksize: Extents,
    stride: Extents | None = None,
    pad: Extents = 0,
    cover_all: bool = True,
    return_indices: Literal[False] = False,
) -> Variable: ...
@overload
def max_pooling_2d(
    x: ArrayLike,
    ksize: Extents,
    stride: Extents | None = None,
    pad: Extents = 0,
    cover_all: bool = True,
    *,
    return_indices: Literal[True],
) -> tuple[Variable, Array]: ...
@overridable
def max_pooling_2d(
    x: ArrayLike,
    ksize: Extents,
    stride: Extents | None = None,
    pad: Extents = 0,
    cover_all: bool = True,
    return_indices: bool = False,
) -> Variable | tuple[Variable, Array]:
    """The largest element of each window of an image.

    Sizes are numbers or pairs (rows, columns); ``stride`` is ``ksize`` if None.
    ``cover_all`` lets the last window extend beyond the end, so windows cover every
    pixel. With ``return_indices`` the index of the maximum in its window is returned,
    too.

    Shapes:
        x: (N, C, H, W)
        return: (N, C, H', W')

    Raises:
        ValueError: ``x`` has not 4 axes.
        InvalidType: ``x`` is not an image of floats.
    """
    check_axes("max_pooling_2d", x, 2)
    window = pooling_window_2d("max_pooling_2d", ksize, stride, pad)
    if return_indices:
        return _with_indices(x, window, cover_all)
    return _core.ops.max_pooling_2d(x, window, cover_all)


@reads_elements
def _with_indices(x: Any, window: Any, cover_all: bool) -> tuple[Any, numpy.ndarray]:
    y, at = _core.ops.max_pooling_2d_with_indices(x, window, cover_all)
    # A recorder knows results of operations, and what later functions do with them.
    at = _core.ops.cast(at, numpy.dtype("int64")).array
    # The core marks a window without elements by -1 or 255.
    at[(at < 0) | (at >= math.prod(window.ksize))] = 0
    return y, at
