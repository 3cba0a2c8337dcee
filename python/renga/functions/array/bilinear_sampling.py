"""Values of images between their pixels."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.core.around_call import reads_elements
from renga.core.backend import get_array_module
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_array, as_variable


def sample_pixels(x: ArrayLike, rows: ArrayLike, columns: ArrayLike) -> Variable:
    """``x`` at points given in pixels, by bilinear interpolation; 0 outside.

    Shapes:
        x: (N, C, H, W)
        rows, columns: (N, …)
        return: (N, C, …)
    """
    if not as_variable(x).device_name.startswith("cuda:"):
        return _core.ops.sample_2d(x, rows, columns)
    return _composed(x, rows, columns)


@reads_elements
def _composed(x: Any, rows: Any, columns: Any) -> Variable:
    """The same of operations that CUDA devices have kernels for."""
    ops = _core.ops
    n, c, h, w = x.shape
    table = ops.reshape(ops.transpose(x, (0, 2, 3, 1)), (n * h * w, c))
    # Points more than a pixel outside are 0, also at infinity.
    rows, columns = ops.clip(rows, -2.0, h + 1.0), ops.clip(columns, -2.0, w + 1.0)
    top, left = numpy.floor(as_array(rows)), numpy.floor(as_array(columns))
    xp = get_array_module(top)
    images = xp.arange(n).reshape(n, *(1,) * (rows.ndim - 1))
    row_fraction, column_fraction = ops.subtract(rows, top), ops.subtract(columns, left)
    terms = []
    for down, weight_down in ((0, 1 - row_fraction), (1, row_fraction)):
        for across, weight_across in ((0, 1 - column_fraction), (1, column_fraction)):
            i, j = top + down, left + across
            inside = (0 <= i) & (i < h) & (0 <= j) & (j < w)  # never for NaN
            i, j = (xp.where(inside, k, 0).astype(int) for k in (i, j))
            at = xp.where(inside, (images * h + i) * w + j, -1)
            corner = ops.embed_id(at, table, -1)
            weight = ops.expand_dims(weight_down * weight_across, rows.ndim)
            terms.append(ops.multiply(corner, ops.broadcast_to(weight, corner.shape)))
    y = ops.add(ops.add(terms[0], terms[1]), ops.add(terms[2], terms[3]))
    return ops.transpose(y, (0, rows.ndim, *range(1, rows.ndim)))
