"""Chainer's classes that compute gradients of functions."""

from __future__ import annotations

from typing import Any

from renga import functions as F
from renga._core import Variable
from renga.chainer.function_classes.operation import OperationNode
from renga.core.types import ArrayLike
from renga.core.variable import as_variable


class LSTMGrad:
    """The gradients of ``lstm`` for ``c_prev`` and ``x``, differentiable functions."""

    def __call__(
        self,
        c_prev: ArrayLike,
        x: ArrayLike,
        c_next: ArrayLike,
        gc: ArrayLike,
        gh: ArrayLike,
    ) -> tuple[Variable, ...]:
        xs = [(as_variable(c_prev), as_variable(x))]
        return _gradients_of_cells(xs, as_variable(c_next), gc, gh)


class SLSTMGrad:
    """The gradients of ``slstm`` for its four inputs, differentiable functions."""

    def __call__(
        self,
        c_prev1: ArrayLike,
        c_prev2: ArrayLike,
        x1: ArrayLike,
        x2: ArrayLike,
        c_next: ArrayLike,
        gc: ArrayLike,
        gh: ArrayLike,
    ) -> tuple[Variable, ...]:
        xs = [
            (as_variable(c_prev1), as_variable(x1)),
            (as_variable(c_prev2), as_variable(x2)),
        ]
        return _gradients_of_cells(xs, as_variable(c_next), gc, gh)


def _gradients_of_cells(xs: Any, c_next: Any, gc: Any, gh: Any) -> tuple[Any, ...]:
    """Those of all cells, then those of all inputs of gates, None being zeros.

    Gates are the last axis of inputs of shape (N, units, 4): a, i, f and o. Samples
    from N on keep their cells.
    """
    n = len(xs[0][1])
    gc, gh = (as_variable(g if g is not None else c_next.array * 0) for g in (gc, gh))
    gates = [F.separate(F.reshape(x, (*c_next[:n].shape, 4)), -1) for _, x in xs]
    o = F.sigmoid(sum((gate[3] for gate in gates[1:]), gates[0][3]))
    tanh_c = F.tanh(c_next[:n])
    go = gh[:n] * tanh_c * o * (1 - o)
    g = gc[:n] + gh[:n] * o * (1 - tanh_c * tanh_c)
    gcs, gxs = [], []
    for (c_prev, x), (a, i, f, _) in zip(xs, gates):
        a, i, f = F.tanh(a), F.sigmoid(i), F.sigmoid(f)
        gcs.append(F.concat((g * f, gc[n:]), axis=0) if n < len(c_next) else g * f)
        parts = (
            g * i * (1 - a * a),
            g * a * i * (1 - i),
            g * c_prev[:n] * f * (1 - f),
            go,
        )
        gxs.append(F.reshape(F.stack(parts, -1), x.shape))
    return (*gcs, *gxs)


class _MulInvStd(OperationNode):
    """``y`` times ``inv_std``, which is differentiated as a function of ``x``."""

    def __init__(self, eps: float, mean: Any, inv_std: Any, dummy_gamma: Any) -> None:
        self.eps, self.mean, self.inv_std = eps, mean, inv_std
        self.dummy_gamma = dummy_gamma

    def compute(self, x: Any, y: Any) -> Any:
        if not self.again:
            return Variable(self.inv_std[:, None] * y)
        mean = F.broadcast_to(F.mean(x, axis=1, keepdims=True), x.shape)
        variance = F.mean(F.square(x - mean), axis=1, keepdims=True)
        return F.broadcast_to(F.rsqrt(variance + self.eps), y.shape) * y


MODULES: dict[str, list[type]] = {
    "normalization.group_normalization": [_MulInvStd],
    "rnn.lstm": [LSTMGrad],
    "rnn.slstm": [SLSTMGrad],
}
