"""Long short-term memory with any number of children: one step."""

from __future__ import annotations

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_floats, check_shape
from renga.utils.type_check import InvalidType


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
