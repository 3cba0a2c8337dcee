"""The inputs of an LSTM's gates."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.core.variable import Variable


def interleaved(x: Any) -> list[Variable]:
    """Four arrays (N, C, …), interleaved along axis 1 of (N, 4 C, …)."""
    ops = _core.ops
    shape = (x.shape[0], x.shape[1] // 4, *x.shape[2:])
    x = ops.reshape(x, (*shape[:2], 4, *shape[2:]))
    return [ops.reshape(gate, shape) for gate in ops.split_axis(x, [1, 2, 3], 2)]
