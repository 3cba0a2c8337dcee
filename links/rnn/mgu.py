"""Minimal gated units, a step at a time."""

from __future__ import annotations

from typing import Any

from renga.core.link import Chain
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions import concat, linear_interpolate, sigmoid, tanh
from renga.links.connection.linear import Linear
from renga.links.rnn.state import StatefulCell
from renga.utils.extents import check_sizes


class MGUBase(Chain):
    """The two layers of a minimal gated unit: of the gate and of the new state."""

    W_f: Linear
    W_h: Linear

    def __init__(self, n_inputs: int, n_units: int) -> None:
        super().__init__()
        check_sizes(self, n_inputs=n_inputs, n_units=n_units)
        with self.init_scope():
            self.W_f = Linear(n_inputs + n_units, n_units)
            self.W_h = Linear(n_inputs + n_units, n_units)

    def _step(self, h: Any, x: Any) -> Variable:
        f = sigmoid(self.W_f(concat([h, x])))
        return linear_interpolate(f, tanh(self.W_h(concat([f * h, x]))), h)


class StatelessMGU(MGUBase):
    """One step of a minimal gated unit whose state is an argument and the result.

    ``f = sigmoid(W_f [h, x])`` and the new state is
    ``(1 - f) h + f tanh(W_h [f h, x])``.

    Shapes:
        h, y: (N, n_units)
        x: (N, n_inputs)

    Source: Zhou et al., Minimal gated unit for recurrent neural networks, 2016.
    """

    def forward(self, h: ArrayLike, x: ArrayLike) -> Variable:
        """The new state after ``h``."""
        return self._step(h, x)


class StatefulMGU(StatefulCell, MGUBase):
    """A minimal gated unit that keeps its state ``h``, initially zeros.

    Otherwise as ``StatelessMGU``.

    Shapes:
        x: (N, in_size)
        h, y: (N, out_size)
    """

    _states = ("h",)
    h: Variable | None

    def __init__(self, in_size: int, out_size: int) -> None:
        super().__init__(in_size, out_size)
        self._state_size = out_size
        self.reset_state()

    def set_state(self, h: Variable) -> None:
        """Sets the state to ``h``, a Variable."""
        self._set_states(h)

    def forward(self, x: ArrayLike) -> Variable:
        """The new state."""
        h = self.h
        if h is None:
            h = Variable(self.xp.zeros((len(x), self._state_size), x.dtype))
        self.h = self._step(h, x)
        return self.h
