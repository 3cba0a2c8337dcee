"""StatefulZoneoutLSTM: long short-term memory that keeps old values at random."""

from __future__ import annotations

from renga._core import ops
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions import zoneout
from renga.links.connection.linear import Linear
from renga.links.rnn.state import StatefulCell
from renga.utils.argument import assert_kwargs_empty, check_unexpected_kwargs
from renga.utils.extents import check_sizes


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
        zeros = Variable(self.xp.zeros((len(x), self.state_size), x.dtype))
        c_prev = zeros if self.c is None else self.c
        h_prev = zeros if self.h is None else self.h
        c, h = ops.lstm(c_prev, self.upward(x), hidden)
        self.c = zoneout(c_prev, c, self.c_ratio)
        self.h = zoneout(h_prev, h, self.h_ratio)
        return self.h
