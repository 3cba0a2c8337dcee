"""Invalid arguments."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy

from .draw import INTS, Built, Draw, Operand

NUMBERS = (
    *(0, 1, -1, 2, -2, -3, 7, 11, 2**15, 2**31 - 1, 2**31, -(2**31), 2**32),
    *(2**33 + 1, 2**62, 2**63 - 1, 2**63, -(2**63), 2**64, -(2**64) - 1, 10**30),
    *(0.0, 0.5, 1.5, -1.5, 1e-30, 1e30, 1e308, float("nan"), float("inf")),
    *(float("-inf"), True, False, numpy.int8(-1), numpy.uint8(200), numpy.float16(2)),
    *(numpy.bool_(True), numpy.int64(2**62), 1j),
)
OTHERS = (
    *(None, "", "no", "mean", b"x", (), [], {}, (0,), (0, 0), (1, 1), (-1,), (2, 2, 2)),
    *((2**62, 2), (2**32, 2**32), (-1, -1), (0, -1), (1.5, 1), ("a",), (None, None)),
    *(Ellipsis, slice(None), object, numpy.zeros(3), numpy.array(1), (2**31, 1)),
)
DTYPES = (*"?efdbhilqBHILQgFDSUOmM", "i4,f4")


@dataclasses.dataclass
class Site:
    """Where a leaf of the arguments is, to put another one there."""

    holder: Any
    key: Any

    def get(self) -> Any:
        return self.holder[self.key]

    def put(self, value: Any) -> None:
        self.holder[self.key] = value


def thaw(tree: Any, sites: list[Site], holder: Any = None, key: Any = None) -> Any:
    """The arguments with lists for tuples; every leaf is added to ``sites``."""
    if isinstance(tree, (tuple, list)):
        new = [None] * len(tree)
        for i, part in enumerate(tree):
            new[i] = thaw(part, sites, new, i)
        return new if isinstance(tree, list) else Frozen(new)
    if isinstance(tree, dict):
        new = {}
        for name, part in tree.items():
            new[name] = thaw(part, sites, new, name)
        return new
    if holder is not None and not callable(tree) and not isinstance(tree, Built):
        sites.append(Site(holder, key))
    return tree


class Frozen:
    """A tuple whose parts may still be changed."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts


def freeze(tree: Any) -> Any:
    if isinstance(tree, Frozen):
        return tuple(freeze(part) for part in tree.parts)
    if isinstance(tree, list):
        return [freeze(part) for part in tree]
    if isinstance(tree, dict):
        return {name: freeze(part) for name, part in tree.items()}
    return tree


def spoil(g: Draw, args: Any, kwargs: Any) -> tuple[Any, Any, str]:
    """The arguments with one or two made bad, and what was done."""
    sites: list[Site] = []
    tree = thaw((args, kwargs), sites)
    done = []
    for _ in range(g.pick(1, 1, 1, 2)):
        if not sites:
            break
        site = g.pick(*sites)
        leaf = site.get()
        if isinstance(leaf, Operand):
            new, text = spoil_operand(g, leaf)
        else:
            new = g.pick(*NUMBERS) if g.chance(0.7) else g.pick(*OTHERS)
            text = f"{leaf!r} -> {new!r}"
        site.put(new)
        done.append(text)
    args, kwargs = freeze(tree)
    return args, kwargs, "; ".join(done) or "nothing to spoil"


def spoil_operand(g: Draw, x: Operand) -> tuple[Any, str]:
    if x.role == "index" and x.value.dtype.kind in "iu" and g.chance(0.6):
        return out_of_range(g, x)
    kind = g.integer(0, 9)
    if kind < 3 and x.value.dtype.kind != "O":
        dtype = g.pick(*DTYPES)
        with numpy.errstate(all="ignore"):
            try:
                return dataclasses.replace(
                    x, value=x.value.astype(dtype)
                ), f"dtype {dtype}"
            except (OverflowError, TypeError, ValueError):
                return x, "as it was"
    if kind < 8:
        value = reshaped(g, x.value)
        return dataclasses.replace(x, value=value), f"shape {value.shape}"
    new = g.pick(*NUMBERS, *OTHERS)
    return new, f"array -> {new!r}"


def reshaped(g: Draw, value: numpy.ndarray) -> numpy.ndarray:
    """Another number of axes or another extent."""
    kind = g.integer(0, 5)
    if kind == 0 or value.ndim == 0:
        return value[None]
    if kind == 1:
        return numpy.ascontiguousarray(value.reshape(-1))
    if kind == 2:
        return numpy.array(value.reshape(-1)[:1].reshape(()) if value.size else 1.0)
    axis = g.integer(0, value.ndim - 1)
    n = g.pick(0, 1, value.shape[axis] + 1, max(value.shape[axis] - 1, 0), 7)
    if value.shape[axis] == 0:
        shape = list(value.shape)
        shape[axis] = n
        return numpy.zeros(shape, value.dtype)
    return value.take(numpy.arange(n) % value.shape[axis], axis)


def out_of_range(g: Draw, x: Operand) -> tuple[Operand, str]:
    """One element of an index becomes another than it may be."""
    assert x.bounds is not None
    low, high = x.bounds
    value = x.value.copy()
    if g.chance(0.3):
        value = value.astype(g.pick(*INTS))
    info = numpy.iinfo(value.dtype)
    wanted = g.pick(high, high + 1, low - 1, -1, -high - 1, info.min, info.max)
    wanted = min(max(wanted, info.min), info.max)
    if value.size:
        value.reshape(-1)[g.integer(0, value.size - 1)] = wanted
    text = f"index {wanted} of {low}..{high - 1} in {value.dtype}"
    return dataclasses.replace(x, value=value), text
