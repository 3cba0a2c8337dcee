"""Gated recurrent units and minimal ones, a step at a time."""

from __future__ import annotations

from typing import Any

from renga.core.link import Chain
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import concat, linear_interpolate, sigmoid, tanh
from renga.links.connection.linear import Linear
from renga.links.rnn.state import StatefulCell, first_state
from renga.utils.extents import check_sizes


class GRUBase(Chain):
    """The layers of a gated recurrent unit: W of the input, U of the state."""

    W_r: Linear
    U_r: Linear
    W_z: Linear
    U_z: Linear
    W: Linear
    U: Linear

    def __init__(
        self,
        in_size: int | None,
        out_size: int,
        init: Initial | None = None,
        inner_init: Initial | None = None,
        bias_init: Initial | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, in_size=in_size, out_size=out_size)
        below: dict[str, Any] = {"initialW": init, "initial_bias": bias_init}
        inner: dict[str, Any] = {"initialW": inner_init, "initial_bias": bias_init}
        with self.init_scope():
            self.W_r = Linear(in_size, out_size, **below)
            self.U_r = Linear(out_size, out_size, **inner)
            self.W_z = Linear(in_size, out_size, **below)
            self.U_z = Linear(out_size, out_size, **inner)
            self.W = Linear(in_size, out_size, **below)
            self.U = Linear(out_size, out_size, **inner)

    def _step(self, h: Any, x: Any) -> Variable:
        r = sigmoid(self.W_r(x) + self.U_r(h))
        z = sigmoid(self.W_z(x) + self.U_z(h))
        return linear_interpolate(z, tanh(self.W(x) + self.U(r * h)), h)


class StatelessGRU(GRUBase):
    """One step of a gated recurrent unit whose state is an argument and the result.

    ``r = sigmoid(W_r x + U_r h)``, ``z = sigmoid(W_z x + U_z h)`` and the new state is
    ``(1 - z) h + z tanh(W x + U (r h))``. ``in_size`` None is taken from the first
    input. ``init`` are initial values of the W, ``inner_init`` of the U.

    Shapes:
        h, y: (N, out_size)
        x: (N, in_size)

    Source: Cho et al., Properties of neural machine translation, 2014.
    """

    def forward(self, h: ArrayLike, x: ArrayLike) -> Variable:
        """The new state after ``h``."""
        return self._step(h, x)


class StatefulGRU(StatefulCell, GRUBase):
    """A gated recurrent unit that keeps its state ``h``.

    As ``StatelessGRU``, but in the first step, without a state, the layers U do not run
    and their biases are not added.

    Shapes:
        x: (N, in_size)
        h, y: (N, out_size)
    """

    _states = ("h",)
    h: Variable | None

    def __init__(
        self,
        in_size: int | None,
        out_size: int,
        init: Initial | None = None,
        inner_init: Initial | None = None,
        bias_init: Initial = 0,
    ) -> None:
        super().__init__(in_size, out_size, init, inner_init, bias_init)
        self.state_size = out_size
        self.reset_state()

    def set_state(self, h: Variable) -> None:
        """Sets the state to ``h``, a Variable."""
        self._set_states(h)

    def forward(self, x: ArrayLike) -> Variable:
        """The new state."""
        if self.h is None:
            self.h = sigmoid(self.W_z(x)) * tanh(self.W(x))
        else:
            self.h = self._step(self.h, x)
        return self.h


class GRU(StatefulGRU):
    """``StatefulGRU`` under its old name."""

    def forward(self, *args: ArrayLike) -> Variable:
        """The new state after the one argument; ValueError for another number."""
        if len(args) == 1:
            return super().forward(*args)
        message = f"GRU: expected one argument, got {len(args)}"
        if len(args) == 2:
            message += "; StatelessGRU takes the state as an argument"
        raise ValueError(message)


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
            h = first_state(self, x, self._state_size)
        self.h = self._step(h, x)
        return self.h
