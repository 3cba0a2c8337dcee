"""SimplifiedDropconnect: a fully connected layer that drops weights."""

from __future__ import annotations

import math

from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import simplified_dropconnect
from renga.initializers import get_initializer
from renga.utils.extents import check_sizes


class SimplifiedDropconnect(Link):
    """A fully connected layer whose weights are zero with probability ``ratio``.

    ``in_size`` None is taken from the first input.

    Shapes:
        x: (N, …) with in_size elements per sample
        y: (N, out_size)
        W: (out_size, in_size)
        b: (out_size,), or None with ``nobias``

    Source: Wan et al., Regularization of neural networks using DropConnect, 2013.
    """

    W: Parameter
    b: Parameter | None

    def __init__(
        self,
        in_size: int | None,
        out_size: int,
        ratio: float = 0.5,
        nobias: bool = False,
        initialW: Initial | None = None,
        initial_bias: Initial | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, in_size=in_size, out_size=out_size)
        self.out_size = out_size
        self.ratio = ratio
        with self.init_scope():
            self.W = Parameter(get_initializer(initialW))
            if in_size is not None:
                self.W.initialize((out_size, in_size))
            if nobias:
                self.b = None
            else:
                bias = 0 if initial_bias is None else initial_bias
                self.b = Parameter(get_initializer(bias), out_size)

    def forward(
        self,
        x: ArrayLike,
        train: bool = True,
        mask: ArrayLike | None = None,
        use_batchwise_mask: bool = True,
    ) -> Variable:
        """The output for ``x``; ``mask`` sets which weights are kept."""
        if not self.W.is_initialized:
            self.W.initialize((self.out_size, math.prod(x.shape[1:])))
        return simplified_dropconnect(
            x, self.W, self.b, self.ratio, train, mask, use_batchwise_mask
        )
