"""Timed calls: functions with inputs of a few megabytes."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy

import renga.functions as F


@dataclasses.dataclass(frozen=True)
class Input:
    """A random array, or a sequence of them.

    Attributes:
        draw: takes a ``numpy.random.RandomState`` and the shape.
        shape: of the array.
        needs_gradient: whether a backward pass computes its gradient.
        channels_last: whether the second axis is the last one in memory.
    """

    draw: Callable[[Any, Sequence[int]], numpy.ndarray]
    shape: tuple[int, ...]
    needs_gradient: bool = True
    channels_last: bool = False

    def array(self, random: Any) -> numpy.ndarray:
        x = numpy.ascontiguousarray(self.draw(random, self.shape))
        if not self.channels_last:
            return x
        return numpy.moveaxis(numpy.ascontiguousarray(numpy.moveaxis(x, 1, -1)), -1, 1)


@dataclasses.dataclass(frozen=True)
class Row:
    """A function in one use.

    Attributes:
        function: its name in ``renga.functions``.
        use: what tells it from other rows of the function; may be empty.
        call: takes the inputs, and returns a Variable or several.
        inputs: Inputs, lists of Inputs, or constants.
        flops: of products in a forward pass; 0 where memory decides.
    """

    function: str
    use: str
    call: Callable[..., Any]
    inputs: tuple[Any, ...]
    flops: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.function} {self.use}".strip()


def row(
    *inputs: Any, call: Any = None, use: str = "", flops: float = 0.0, **options: Any
) -> Callable[[str], Row]:
    """A call of the function whose row it is in, by default with ``options``."""

    def named(name: str) -> Row:
        function = call or functools.partial(getattr(F, name), **options)
        return Row(name, use, function, inputs, flops)

    return named


def normal(*shape: int, scale: float = 1.0) -> Input:
    return Input(lambda r, s: (scale * r.standard_normal(s)).astype("f"), shape)


def uniform(low: float, high: float, *shape: int) -> Input:
    return Input(lambda r, s: r.uniform(low, high, s).astype("f"), shape)


def indices(n: int, *shape: int) -> Input:
    return Input(lambda r, s: r.randint(0, n, s).astype("i"), shape, False)


def bools(*shape: int) -> Input:
    return Input(lambda r, s: r.random_sample(s) < 0.5, shape, False)


def matrices(*shape: int) -> Input:
    """Symmetric positive definite ones, far from singular."""

    def draw(random: Any, shape: Sequence[int]) -> numpy.ndarray:
        a = random.standard_normal(shape) * 0.3 / math.sqrt(shape[-1])
        return (numpy.eye(shape[-1]) + a @ a.swapaxes(-1, -2)).astype("f")

    return Input(draw, shape)


def constant(x: Input) -> Input:
    return dataclasses.replace(x, needs_gradient=False)


def last(x: Input) -> Input:
    """The same numbers with channels last."""
    return dataclasses.replace(x, channels_last=True)


IMAGES = (8, 32, 64, 64)
MATRIX = (1024, 1024)
ROWS_OF_TEN = (100_000, 10)
images, matrix, tall = normal(*IMAGES), normal(*MATRIX), normal(*ROWS_OF_TEN)
