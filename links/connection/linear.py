"""Linear: a fully connected layer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from renga import initializers
from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable, as_array
from renga.functions import linear
from renga.functions.array.cast import with_cast_params
from renga.utils.extents import check_sizes
from renga.utils.type_check import InvalidType


class Linear(Link):
    """A fully connected layer: ``y = x Wᵀ + b``.

    ``in_size`` None, or left out (``Linear(out_size)``), is taken from the first
    input. ``initialW`` and ``initial_bias`` are numbers, arrays or initializers.

    Shapes:
        x: (*batch, *any), where the latter multiply to in_size
        y: (*batch, out_size)
        W: (out_size, in_size)
        b: (out_size,), or None with ``nobias``
    """

    W: Parameter
    b: Parameter | None

    def __init__(
        self,
        in_size: int | None,
        out_size: int | None = None,
        nobias: bool = False,
        initialW: Initial | None = None,
        initial_bias: Initial | None = None,
    ) -> None:
        super().__init__()
        if out_size is None:
            in_size, out_size = None, in_size
        check_sizes(self, in_size=in_size, out_size=out_size)
        self.in_size = in_size
        self.out_size: Any = out_size
        with self.init_scope():
            self.W = Parameter(initializers.get_initializer(initialW))
            if in_size is not None:
                self._initialize_params(in_size)
            if nobias:
                self.b = None
            else:
                bias = 0 if initial_bias is None else initial_bias
                self.b = Parameter(initializers.get_initializer(bias), out_size)

    def _initialize_params(self, in_size: int) -> None:
        self.W.initialize((self.out_size, in_size))

    @property
    def printable_specs(self) -> Iterator[tuple[str, object]]:
        yield "in_size", self.in_size
        yield "out_size", self.out_size
        yield "nobias", self.b is None

    @classmethod
    def from_params(
        cls, W: ArrayLike, b: ArrayLike | None = None, nobias: bool = False
    ) -> Linear:
        """A layer with the given parameter values."""
        out_size, in_size = W.shape
        return cls(
            in_size,
            out_size,
            nobias=nobias,
            initialW=as_array(W),
            initial_bias=as_array(b),
        )

    def forward(self, x: ArrayLike, n_batch_axes: int = 1) -> Variable:
        """The output for ``x``, whose first ``n_batch_axes`` axes are the batch's."""
        if not self.W.is_initialized:
            self._initialize_params(math.prod(x.shape[n_batch_axes:]))
        try:
            return linear(x, self.W, self.b, n_batch_axes=n_batch_axes)
        except InvalidType as error:
            params = self.W, self.b
            return with_cast_params(
                error, linear, x, *params, n_batch_axes=n_batch_axes
            )
