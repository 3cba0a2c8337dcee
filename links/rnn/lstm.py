"""Long short-term memory, a step at a time."""

from __future__ import annotations

import math
from typing import Any

from renga._core import ops
from renga.core.link import Chain
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import concat, sigmoid, split_axis, tanh, zoneout
from renga.functions.rnn.lstm import interleaved
from renga.initializers import get_initializer
from renga.links.connection.linear import Linear
from renga.links.rnn.state import StatefulCell, first_state
from renga.utils.argument import assert_kwargs_empty, check_unexpected_kwargs
from renga.utils.extents import check_sizes


class LSTMBase(Chain):
    """The two layers that feed the gates: ``upward`` of the input, ``lateral`` of h."""

    upward: Linear
    lateral: Linear

    def __init__(
        self,
        in_size: int | None,
        out_size: int | None = None,
        lateral_init: Initial | None = None,
        upward_init: Initial | None = None,
        bias_init: Initial | None = None,
        forget_bias_init: Initial | None = None,
    ) -> None:
        super().__init__()
        if out_size is None:
            in_size, out_size = None, in_size
        check_sizes(self, in_size=in_size, out_size=out_size)
        assert out_size is not None
        self.state_size = out_size
        self.lateral_init = lateral_init
        self.upward_init = upward_init
        self.bias_init = 0 if bias_init is None else bias_init
        self.forget_bias_init = 1 if forget_bias_init is None else forget_bias_init
        with self.init_scope():
            self.upward = Linear(in_size, 4 * out_size, initialW=0)
            self.lateral = Linear(out_size, 4 * out_size, nobias=True, initialW=0)
        if in_size is not None:
            self._initialize_params()

    def _initialize_params(self) -> None:
        """Sets the initial weights of each gate."""
        n = self.state_size
        lateral = get_initializer(self.lateral_init)
        upward = get_initializer(self.upward_init)
        for start in range(0, 4 * n, n):
            lateral(self.lateral.W.array[start : start + n])
            upward(self.upward.W.array[start : start + n])
        assert self.upward.b is not None
        bias = get_initializer(self.bias_init)
        forget_bias = get_initializer(self.forget_bias_init)
        gates = self.upward.b.array.reshape(1, n, 4, 1)
        for gate, fill in enumerate((bias, bias, forget_bias, bias)):
            fill(gates[:, :, gate])

    def _upward(self, x: Any) -> Variable:
        if not self.upward.W.is_initialized:
            self.upward.W.initialize((4 * self.state_size, math.prod(x.shape[1:])))
            self._initialize_params()
        return self.upward(x)

    def _zeros(self, x: Any) -> Variable:
        return first_state(self, x, self.state_size)


class StatelessLSTM(LSTMBase):
    """One step of long short-term memory whose state is an argument and a result.

    ``in_size`` None, or left out (``StatelessLSTM(out_size)``), is taken from the
    first input. The initial values are those of one gate's weights.

    Shapes:
        x: (N, in_size)
        c, h: (N, out_size)
        upward.W: (4 out_size, in_size); its rows are interleaved by gate
        lateral.W: (4 out_size, out_size)

    Source: Hochreiter and Schmidhuber, Long short-term memory, 1997.
    """

    def forward(
        self, c: ArrayLike | None, h: ArrayLike | None, x: ArrayLike
    ) -> tuple[Variable, Variable]:
        """The new ``(c, h)``; None means a state of zeros."""
        c = self._zeros(x) if c is None else c
        return ops.lstm(c, self._upward(x), None if h is None else self.lateral(h))


class LSTM(LSTMBase, StatefulCell):
    """Long short-term memory that keeps its state ``c`` and ``h``.

    A batch may be smaller than the one before: the last samples have finished, and
    their state is unchanged. Otherwise as ``StatelessLSTM``.

    Shapes:
        x: (N, in_size)
        c, h: (B, out_size), N <= B
        y: (N, out_size)

    Raises:
        TypeError: the batch is larger than the one before.
    """

    _states = ("c", "h")

    def __init__(
        self,
        in_size: int | None,
        out_size: int | None = None,
        lateral_init: Initial | None = None,
        upward_init: Initial | None = None,
        bias_init: Initial | None = None,
        forget_bias_init: Initial | None = None,
    ) -> None:
        super().__init__(
            in_size, out_size, lateral_init, upward_init, bias_init, forget_bias_init
        )
        self.reset_state()

    c: Variable | None
    h: Variable | None

    def set_state(self, c: Variable, h: Variable) -> None:
        """Sets the state to ``c`` and ``h``, Variables."""
        self._set_states(c, h)

    def forward(self, x: ArrayLike) -> Variable:
        """The new ``h`` of the samples of ``x``."""
        n = len(x)
        gates, hidden = self._upward(x), None
        finished: list[Variable] = []
        if self.h is not None:
            if len(self.h) < n:
                raise TypeError(
                    f"LSTM: expected at most {len(self.h)} samples, the size of the "
                    f"state, got {n}"
                )
            h = self.h
            if len(h) > n:
                parts: Any = split_axis(h, [n], 0)
                h, *finished = parts
            hidden = self.lateral(h)
        self.c, y = ops.lstm(
            self._zeros(x) if self.c is None else self.c, gates, hidden
        )
        self.h = concat([y, *finished], 0) if finished else y
        return y


class StatefulPeepholeLSTM(StatefulCell):
    """Long short-term memory with connections from the cell to the gates.

    The input and forget gates read the old cell, the output gate the new one. The
    state ``c`` and ``h`` is kept, initially zeros.

    Shapes:
        x: (N, in_size)
        c, h, y: (N, out_size)

    Source: Gers and Schmidhuber, Recurrent nets that time and count, 2000.
    """

    _states = ("c", "h")
    c: Variable | None
    h: Variable | None

    def __init__(self, in_size: int | None, out_size: int) -> None:
        super().__init__()
        check_sizes(self, in_size=in_size, out_size=out_size)
        self.state_size = out_size
        n = out_size
        with self.init_scope():
            self.upward = Linear(in_size, 4 * n)
            self.lateral = Linear(n, 4 * n, nobias=True)
            self.peep_i = Linear(n, n, nobias=True)
            self.peep_f = Linear(n, n, nobias=True)
            self.peep_o = Linear(n, n, nobias=True)
        self.reset_state()

    def forward(self, x: ArrayLike) -> Variable:
        """The new ``h``."""
        gates = self.upward(x)
        if self.h is not None:
            gates = gates + self.lateral(self.h)
        c = self.c
        if c is None:
            c = first_state(self, x, self.state_size)
        a, i, f, o = interleaved(gates)
        keep, take = sigmoid(f + self.peep_f(c)), sigmoid(i + self.peep_i(c))
        self.c = keep * c + take * tanh(a)
        self.h = sigmoid(o + self.peep_o(self.c)) * tanh(self.c)
        return self.h


class StatefulZoneoutLSTM(StatefulCell):
    """Long short-term memory with zoneout of the cell and of the output.

    While training, elements of ``c`` keep their old values with probability
    ``c_ratio`` and those of ``h`` with ``h_ratio``. The state ``c`` and ``h`` is
    kept, initially zeros.

    Shapes:
        x: (N, in_size)
        c, h, y: (N, out_size)

    Source: Krueger et al., Zoneout: regularizing RNNs by randomly preserving hidden
    activations, 2016.
    """

    _states = ("c", "h")
    c: Variable | None
    h: Variable | None

    def __init__(
        self,
        in_size: int | None,
        out_size: int,
        c_ratio: float = 0.5,
        h_ratio: float = 0.5,
        **kwargs: object,
    ) -> None:
        check_unexpected_kwargs(
            kwargs, train="train: use renga.using_config('train', …)"
        )
        assert_kwargs_empty(kwargs)
        super().__init__()
        check_sizes(self, in_size=in_size, out_size=out_size)
        self.state_size = out_size
        self.c_ratio = c_ratio
        self.h_ratio = h_ratio
        with self.init_scope():
            self.upward = Linear(in_size, 4 * out_size)
            self.lateral = Linear(out_size, 4 * out_size, nobias=True)
        self.reset_state()

    def set_state(self, c: Variable, h: Variable) -> None:
        """Sets the state to ``c`` and ``h``, Variables."""
        self._set_states(c, h)

    def forward(self, x: ArrayLike) -> Variable:
        """The new ``h``."""
        hidden = None if self.h is None else self.lateral(self.h)
        zeros = first_state(self, x, self.state_size)
        c_prev = zeros if self.c is None else self.c
        h_prev = zeros if self.h is None else self.h
        c, h = ops.lstm(c_prev, self.upward(x), hidden)
        self.c = zoneout(c_prev, c, self.c_ratio)
        self.h = zoneout(h_prev, h, self.h_ratio)
        return self.h
