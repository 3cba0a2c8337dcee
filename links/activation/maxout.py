"""Maxout: the largest of several fully connected layers."""

from __future__ import annotations

from typing import Any

import numpy

from renga.core import backend
from renga.core.initializer import Initializer
from renga.core.link import Chain
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import maxout
from renga.links.connection.linear import Linear
from renga.utils.extents import check_count, check_sizes


class Maxout(Chain):
    """For each unit the maximum of ``pool_size`` linear functions of the input.

    ``in_size`` None is taken from the first input; ``initial_bias`` None means that
    there is no bias. Arrays and functions of initial values have an axis for the pool.

    Shapes:
        x: (N, …) with in_size elements per sample
        y: (N, out_size)
        initialW: (out_size, pool_size, in_size)
        initial_bias: (out_size, pool_size)

    Raises:
        ValueError: ``pool_size`` is below 1, or an array of initial values has another
            number of axes.

    Source: Goodfellow et al., Maxout networks, 2013.
    """

    linear: Linear

    def __init__(
        self,
        in_size: int | None,
        out_size: int,
        pool_size: int,
        initialW: Initial | None = None,
        initial_bias: Initial = 0,
    ) -> None:
        super().__init__()
        check_sizes(self, in_size=in_size, out_size=out_size)
        self.out_size = out_size
        self.pool_size = check_count("Maxout", "pool_size", pool_size)
        W = _merged("initialW", initialW, (out_size, pool_size, -1))
        bias = _merged("initial_bias", initial_bias, (out_size, pool_size))
        with self.init_scope():
            self.linear = Linear(
                in_size, out_size * pool_size, bias is None, W, initial_bias=bias
            )

    def forward(self, x: ArrayLike) -> Variable:
        """The output for ``x``."""
        return maxout(self.linear(x), self.pool_size)


def _merged(name: str, initial: Any, shape: tuple[int, ...]) -> Any:
    """Initial values with the axis of the pool merged into that of the units."""
    is_array = isinstance(initial, backend.get_array_types())
    if is_array:
        if initial.ndim != len(shape):
            raise ValueError(
                f"Maxout: expected {name} of {len(shape)} axes, got {initial.ndim}"
            )
        return initial.reshape(shape[0] * shape[1], *initial.shape[2:])
    if initial is None or numpy.isscalar(initial):
        return initial
    if isinstance(initial, Initializer):
        return initial
    return _Split(initial, shape)


class _Split:
    """Calls a function with the array reshaped to have an axis for the pool."""

    def __init__(self, function: Any, shape: tuple[int, ...]) -> None:
        self.function = function
        self.shape = shape

    def __call__(self, array: Any) -> None:
        self.function(array.reshape(self.shape))
