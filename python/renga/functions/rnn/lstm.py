"""Steps of long short-term memory with one input, two, or any number of children."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_floats, check_shape
from renga.utils.type_check import InvalidType


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


def slstm(
    c_prev1: ArrayLike, c_prev2: ArrayLike, x1: ArrayLike, x2: ArrayLike
) -> tuple[Variable, Variable]:
    """New cell and output ``(c, h)`` of a node of a tree with two children.

    ``c = sum(tanh(a) sigmoid(i) + c_prev sigmoid(f))`` over both children and
    ``h = tanh(c) sigmoid(o1 + o2)``, with a, i, f, o interleaved along axis 1 of each.

    Shapes:
        c_prev1, c_prev2, c, h: (N, C, …)
        x1, x2: (N, 4 C, …)

    Raises:
        InvalidType: shapes or dtypes do not fit.

    Source: Zhu et al., Long short-term memory over recursive structures, 2015.
    """
    check_floats("slstm", c_prev1, c_prev2, x1, x2)
    cell = c_prev1.shape
    gates = (*cell[:1], *(4 * n for n in cell[1:2]), *cell[2:])
    fits = len(cell) >= 2 and c_prev2.shape == cell and x1.shape == x2.shape == gates
    expected = "(N, C, …) twice and (N, 4 C, …) twice"
    check_shape("slstm", fits, expected, c_prev1, c_prev2, x1, x2)
    ops = _core.ops
    a1, i1, f1, o1 = interleaved(x1)
    a2, i2, f2, o2 = interleaved(x2)
    c = ops.tanh(a1) * ops.sigmoid(i1) + ops.sigmoid(f1) * c_prev1
    c = c + ops.tanh(a2) * ops.sigmoid(i2) + ops.sigmoid(f2) * c_prev2
    return c, ops.sigmoid(o1 + o2) * ops.tanh(c)


def tree_lstm(*inputs: ArrayLike) -> tuple[Variable, Variable]:
    """New cell and output ``(c, h)`` of a node: ``tree_lstm(c1, …, cn, x)``.

    ``c = tanh(a) sigmoid(i) + sum(ck sigmoid(fk))`` and ``h = tanh(c) sigmoid(o)``,
    with ``x`` holding a, i, o, f1, …, fn one after the other.

    Shapes:
        c1, …, cn, c, h: (N, C)
        x: (N, (3 + n) C)

    Raises:
        InvalidType: there is no cell, or shapes or dtypes do not fit.

    Source: Tai et al., Improved semantic representations from tree-structured long
    short-term memory networks, 2015.
    """
    if len(inputs) < 2:
        raise InvalidType(f"tree_lstm: expected a cell and x, got {len(inputs)} inputs")
    *cells, x = inputs
    check_floats("tree_lstm", *inputs)
    n_gates = 3 + len(cells)
    fits = all(c.ndim == 2 and c.shape == cells[0].shape for c in cells)
    fits = fits and x.shape == (len(cells[0]), n_gates * cells[0].shape[1])
    check_shape("tree_lstm", fits, f"(N, C) and (N, {n_gates} C)", *inputs)
    units = cells[0].shape[1]
    ops = _core.ops
    a, i, o, *fs = ops.split_axis(x, [units * k for k in range(1, n_gates)], 1)
    c = ops.tanh(a) * ops.sigmoid(i)
    for f, cell in zip(fs, cells):
        c = c + ops.sigmoid(f) * cell
    return c, ops.sigmoid(o) * ops.tanh(c)
