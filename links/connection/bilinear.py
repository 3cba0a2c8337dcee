"""Bilinear: a fully connected layer of the products of two inputs."""

from __future__ import annotations

from typing import Any

from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import bilinear
from renga.initializers import get_initializer
from renga.utils.extents import check_sizes


class Bilinear(Link):
    """``e1 W e2 + e1 V1 + e2 V2 + b``; with ``nobias`` only the first term.

    ``initial_bias`` is None or the initial values of V1, V2 and b.

    Shapes:
        e1: (N, …) with left_size elements per sample
        e2: (N, …) with right_size elements per sample
        y: (N, out_size)
        W: (left_size, right_size, out_size)
        V1: (left_size, out_size)
        V2: (right_size, out_size)
        b: (out_size,)

    Raises:
        ValueError: ``initial_bias`` is neither None nor a tuple.

    Source: Socher et al., Reasoning with neural tensor networks, 2013.
    """

    W: Parameter
    V1: Parameter
    V2: Parameter
    b: Parameter

    def __init__(
        self,
        left_size: int,
        right_size: int,
        out_size: int,
        nobias: bool = False,
        initialW: Initial | None = None,
        initial_bias: Initial | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, left_size=left_size, right_size=right_size, out_size=out_size)
        self.in_sizes = (left_size, right_size)
        self.nobias = nobias
        with self.init_scope():
            shape = (left_size, right_size, out_size)
            _check_shape("W", initialW, shape)
            self.W = Parameter(get_initializer(initialW), shape)
            if nobias:
                return
            V1, V2, b = _biases(initial_bias)
            _check_shape("V1", V1, (left_size, out_size))
            _check_shape("V2", V2, (right_size, out_size))
            _check_shape("b", b, (out_size,))
            self.V1 = Parameter(get_initializer(V1), (left_size, out_size))
            self.V2 = Parameter(get_initializer(V2), (right_size, out_size))
            self.b = Parameter(get_initializer(b), out_size)

    def forward(self, e1: ArrayLike, e2: ArrayLike) -> Variable:
        """The output for ``e1`` and ``e2``."""
        if self.nobias:
            return bilinear(e1, e2, self.W)
        return bilinear(e1, e2, self.W, self.V1, self.V2, self.b)

    def zero_grads(self) -> None:
        """Fills every gradient with zeros, as ``zerograds`` does."""
        self.zerograds()


def _check_shape(name: str, value: Any, shape: tuple[int, ...]) -> None:
    """Raises AssertionError for an array of another shape."""
    got = getattr(value, "shape", shape)
    assert got == shape, f"Bilinear: expected {name} of shape {shape}, got {got}"


def _biases(initial: Any) -> tuple[Any, Any, Any]:
    if initial is None:
        return None, None, 0
    if not isinstance(initial, tuple):
        raise ValueError(
            "Bilinear: expected initial_bias to be None or a tuple of three, got "
            f"{type(initial).__name__}"
        )
    V1, V2, b = initial
    return V1, V2, b
