"""Long short-term memory: one step."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable


def lstm(c_prev: ArrayLike, x: ArrayLike) -> tuple[Variable, Variable]:
    """New cell and output ``(c, h)`` from the old cell and the gates' inputs.

    ``c = tanh(a) sigmoid(i) + c_prev sigmoid(f)`` and ``h = tanh(c) sigmoid(o)``, with
    a, i, f, o interleaved along axis 1 of ``x``. Cells of samples that ``x`` lacks are
    unchanged.

    Shapes:
        c_prev, c: (B, C, …)
        x: (N, 4 C, …), N <= B
        h: (N, C, …)

    Raises:
        InvalidType: shapes or dtypes do not fit.

    Source: Hochreiter and Schmidhuber, Long short-term memory, 1997.
    """
    return _core.ops.lstm(c_prev, x)


def interleaved(x: ArrayLike) -> list[Variable]:
    """Four arrays (N, C, …), interleaved along axis 1 of (N, 4 C, …)."""
    ops = _core.ops
    shape = (x.shape[0], x.shape[1] // 4, *x.shape[2:])
    x = ops.reshape(x, (*shape[:2], 4, *shape[2:]))
    return [ops.reshape(gate, shape) for gate in ops.split_axis(x, [1, 2, 3], 2)]
