"""Random operands: shapes, dtypes, values and what a function may do with them."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import numpy

FLOATS = "efd"
INTS = "bhilB"
FOREIGN = "HILQ"  # NumPy's dtypes that renga lacks
EXTENTS = (0, 1, 1, 2, 3, 4, 5)
LONG = (16, 17, 33, 64, 100, 257, 1025)
MOST_ELEMENTS = 3000


@dataclasses.dataclass
class Operand:
    """An array of a call before it has a layout.

    Attributes:
        value: Native and contiguous.
        role: ``"x"`` may be a Variable and have a gradient, ``"constant"`` may not,
            ``"index"`` is within ``bounds``, ``"target"`` is written by the function.
        bounds: Of an index: the least and one more than the largest.
    """

    value: numpy.ndarray
    role: str = "x"
    bounds: tuple[int, int] | None = None


@dataclasses.dataclass
class Built:
    """An argument made of operands, such as a sparse matrix."""

    make: Callable[..., Any]
    parts: tuple[Any, ...]


def tree_map(f: Callable[[Any], Any], tree: Any) -> Any:
    """``f`` of every leaf; lists, tuples, dicts and Built are kept."""
    if isinstance(tree, (list, tuple)):
        return type(tree)([tree_map(f, part) for part in tree])
    if isinstance(tree, dict):
        return {key: tree_map(f, part) for key, part in tree.items()}
    if isinstance(tree, Built):
        return f(Built(tree.make, tuple(tree_map(f, part) for part in tree.parts)))
    return f(tree)


def operands(tree: Any) -> list[Operand]:
    found: list[Operand] = []
    tree_map(lambda x: found.append(x) if isinstance(x, Operand) else None, tree)
    return found


class Draw:
    """The random choices of one call.

    ``special`` lets floats be NaN, infinite, denormal or huge; ``dtypes`` are those of
    the floats that the call takes.
    """

    def __init__(
        self, rng: numpy.random.Generator, dtypes: str = FLOATS, special: bool = False
    ) -> None:
        self.rng = rng
        self.dtype = numpy.dtype(self.pick(*dtypes))
        self.mixed = self.chance(0.05)
        self.special = special and self.chance(0.2)

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def integer(self, low: int, high: int) -> int:
        """From ``low`` to ``high``, both included."""
        return int(self.rng.integers(low, high + 1))

    def uniform(self, low: float, high: float) -> float:
        return float(self.rng.uniform(low, high))

    def extent(self, least: int = 0) -> int:
        n = self.pick(*LONG) if self.chance(0.03) else self.pick(*EXTENTS)
        return n if n >= least else self.integer(max(least, 1), least + 3)

    def shape(self, low: int = 0, high: int = 4, least: int = 0) -> tuple[int, ...]:
        """Between ``low`` and ``high`` axes of at least ``least`` elements."""
        shape = [self.extent(least) for _ in range(self.integer(low, high))]
        while numpy.prod(shape) > MOST_ELEMENTS:
            shape[int(numpy.argmax(shape))] = 2
        return tuple(max(n, least) for n in shape)

    def axis(self, ndim: int) -> int:
        return self.integer(-ndim, ndim - 1) if ndim else 0

    def axes(self, ndim: int) -> Any:
        """None, an axis or some axes, counted from either end."""
        kind = self.integer(0, 2)
        if kind == 0 or ndim == 0:
            return None
        if kind == 1:
            return self.axis(ndim)
        n = self.integer(1, ndim)
        chosen = self.rng.permutation(ndim)[:n]
        return tuple(int(a) - ndim * self.integer(0, 1) for a in chosen)

    def float_dtype(self) -> numpy.dtype:
        return numpy.dtype(self.pick(*FLOATS)) if self.mixed else self.dtype

    def x(
        self,
        *shape: int,
        low: float = -2.0,
        high: float = 2.0,
        role: str = "x",
        special: bool | None = None,
    ) -> Operand:
        dtype = self.float_dtype()
        if dtype.kind != "f":
            return Operand(self.whole(dtype, shape), role)
        value = numpy.asarray(self.rng.uniform(low, high, shape), dtype)
        if self.special if special is None else special:
            self.add_special(value)
        return Operand(value, role)

    def u(self, *shape: int, **options: Any) -> Operand:
        return self.x(*shape, low=0.05, high=0.95, **options)

    def positive(self, *shape: int, **options: Any) -> Operand:
        return self.x(*shape, low=0.25, high=3.0, **options)

    def add_special(self, value: numpy.ndarray) -> None:
        info = numpy.finfo(value.dtype)
        choices = [numpy.nan, numpy.inf, -numpy.inf, 0.0, -0.0, 1.0, -1.0]
        choices += [info.max, info.min, info.tiny, info.smallest_subnormal]
        flat = value.reshape(-1)
        for place in self.rng.integers(0, max(value.size, 1), 3 if value.size else 0):
            flat[place] = self.pick(*choices)

    def whole(self, dtype: numpy.dtype, shape: tuple[int, ...]) -> numpy.ndarray:
        """Whole numbers: small ones, or any with the least and the largest."""
        if dtype.kind == "b":
            return numpy.asarray(self.rng.integers(0, 2, shape)).astype(dtype)
        info = numpy.iinfo(dtype)
        if self.chance(0.7):
            low = 0 if dtype.kind == "u" else -5
            return numpy.asarray(self.rng.integers(low, 8, shape)).astype(dtype)
        value = numpy.asarray(
            self.rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        )
        extremes = numpy.array([info.min, info.max, 0], dtype)
        flat = value.reshape(-1)
        if value.size:
            flat[:: max(1, value.size // 3)] = self.pick(*extremes)
        return value

    def index(
        self, below: int, *shape: int, low: int = 0, dtypes: str = INTS
    ) -> Operand:
        """Whole numbers in [low, below)."""
        dtype = numpy.dtype(self.pick(*(FOREIGN if self.chance(0.02) else dtypes)))
        if dtype.kind == "u":
            low = max(low, 0)
        if below <= low:
            shape = shape if 0 in shape else (0, *shape[1:]) if shape else shape
            return Operand(numpy.zeros(shape, dtype), "index", (low, below))
        top = min(below, int(numpy.iinfo(dtype).max) + 1)
        value = numpy.asarray(self.rng.integers(low, top, shape)).astype(dtype)
        return Operand(value, "index", (low, below))

    def mask(self, *shape: int) -> Operand:
        return Operand(numpy.asarray(self.rng.random(shape) < 0.5), "constant")

    def target(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Operand:
        return self.x(*shape, low=low, high=high, role="target", special=False)

    def broadcastable(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts to ``shape``."""
        drop = self.integer(0, len(shape)) if self.chance(0.3) else 0
        kept = shape[drop:]
        return tuple(1 if self.chance(0.25) else n for n in kept)

    def pair(self, **options: Any) -> tuple[Operand, Operand]:
        """Two operands that broadcast together."""
        shape = self.shape()
        a = self.x(*self.broadcastable(shape), **options)
        b = self.x(*self.broadcastable(shape), **options)
        return (a, b) if self.chance(0.5) else (b, a)
