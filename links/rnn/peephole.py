"""StatefulPeepholeLSTM: long short-term memory whose gates read the cell."""

from __future__ import annotations

from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions import sigmoid, tanh
from renga.functions.rnn.lstm import interleaved
from renga.links.connection.linear import Linear
from renga.links.rnn.state import StatefulCell
from renga.utils.extents import check_sizes


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
            c = Variable(self.xp.zeros((len(x), self.state_size), x.dtype))
        a, i, f, o = interleaved(gates)
        keep, take = sigmoid(f + self.peep_f(c)), sigmoid(i + self.peep_i(c))
        self.c = keep * c + take * tanh(a)
        self.h = sigmoid(o + self.peep_o(self.c)) * tanh(self.c)
        return self.h
