"""Highway: a fully connected layer with a gate to the input."""

from __future__ import annotations

from typing import Callable

from renga.core.link import Chain
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import linear_interpolate, relu, sigmoid
from renga.links.connection.linear import Linear
from renga.utils.extents import check_sizes


class Highway(Chain):
    """``t activate(plain(x)) + (1 - t) x`` with ``t = sigmoid(transform(x))``.

    ``init_Wh`` and ``init_bh`` are initial values of ``plain``, ``init_Wt`` and
    ``init_bt`` of ``transform``, whose bias is negative so that the input passes at
    first.

    Shapes:
        x, y: (N, in_out_size)

    Source: Srivastava et al., Highway networks, 2015.
    """

    plain: Linear
    transform: Linear

    def __init__(
        self,
        in_out_size: int,
        nobias: bool = False,
        activate: Callable[[Variable], Variable] = relu,
        init_Wh: Initial | None = None,
        init_Wt: Initial | None = None,
        init_bh: Initial | None = None,
        init_bt: Initial = -1,
    ) -> None:
        super().__init__()
        check_sizes(self, in_out_size=in_out_size)
        self.activate = activate
        n = in_out_size
        with self.init_scope():
            self.plain = Linear(n, n, nobias, init_Wh, init_bh)
            self.transform = Linear(n, n, nobias, init_Wt, init_bt)

    def forward(self, x: ArrayLike) -> Variable:
        """The output for ``x``."""
        plain = self.activate(self.plain(x))
        return linear_interpolate(sigmoid(self.transform(x)), plain, x)
