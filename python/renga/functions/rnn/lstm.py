"""Long short-term memory: one step."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.functions.activation.gates import interleaved
from renga.functions.check import check_floats, check_shape
from renga.variable import Variable


def lstm(c_prev: Any, x: Any) -> tuple[Variable, Variable]:
    """New cell and output ``(c, h)`` from the old cell and the gates' inputs.

    ``c = tanh(a) sigmoid(i) + c_prev sigmoid(f)`` and ``h = tanh(c) sigmoid(o)``, with
    a, i, f, o taken in turn from axis 1 of ``x``. Cells of samples that ``x`` no longer
    has stay as they are.

    Shapes:
        c_prev, c: (B, C, …)
        x: (N, 4 C, …), N <= B
        h: (N, C, …)

    Raises:
        InvalidType: shapes or dtypes do not fit.

    Source: Hochreiter and Schmidhuber, Long short-term memory, 1997.
    """
    check_floats("lstm", c_prev, x)
    ops = _core.ops
    fits = (
        2 <= x.ndim == c_prev.ndim
        and x.shape[0] <= c_prev.shape[0]
        and x.shape[1] == 4 * c_prev.shape[1]
        and x.shape[2:] == c_prev.shape[2:]
    )
    check_shape("lstm", fits, "(B, C, …) and (N, 4 C, …), N <= B", c_prev, x)
    finished: list[Variable] = []
    if len(x) < len(c_prev):
        c_prev, *finished = ops.split_axis(c_prev, [len(x)], 0)
    a, i, f, o = interleaved(x)
    c = ops.tanh(a) * ops.sigmoid(i) + ops.sigmoid(f) * c_prev
    h = ops.sigmoid(o) * ops.tanh(c)
    return (ops.concat([c, *finished], 0) if finished else c), h
