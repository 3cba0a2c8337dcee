"""Calls of every function, for empty batches and unusual arrays, and their outcomes.

The calls are those of the catalogue's rows (``edges``). In them N is the number of
samples; ``u`` makes Variables of floats in (0, 1), ``s`` in (-2, 2), and ``i`` arrays
of integers below its first argument.

Chainer 7.8.1's outcomes are recorded in ``tests/chainer_outcomes``: for batches of no
and of two samples, in float32 and in float16, the error, or of each output and each
gradient dtype, shape, a weighted sum and the sum of the absolute values (null for NaN
and infinity).
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy

RECORDED = Path(__file__).parents[3] / "chainer_outcomes/recorded/edges"
OPERATORS = """
s(N, 3) + s(N, 3)
s(N, 3) - s(3)
s(N, 3) * s(N, 1)
s(N, 3) / u(N, 3)
u(N, 3) ** s(N, 3)
u(N, 3) ** 2.5
2 ** s(N, 3)
s(N, 3) // u(N, 3)
-s(N, 3)
abs(s(N, 3))
s(N, 3) @ s(3, 2)
3 - s(N, 3)
2 / u(N, 3)
s(N, 3)[:, 1]
s(N, 3)[::-1]
s(N, 3)[0:1]
s(N, 3).T
s(N, 3).reshape(-1)
s() + s()
s() - s(3)
s() * 2
s() / u()
u() ** s()
-s()
s() // u()
"""

# How many samples, and of which dtype.
MODES = {"nothing": (0, "f"), "two": (2, "f"), "half": (2, "e")}


def calls() -> list[str]:
    """Those of the catalogue, and of operators.

    Where renga is not installed, they are those that are recorded already.
    """
    try:
        from tests.catalogue import CATALOGUE
    except ImportError:
        return list(recorded("edge_functions"))
    functions = [call for row in CATALOGUE.values() for call in row.edges]
    return functions + OPERATORS.strip().split("\n")


def recorded(name: str) -> dict[str, dict[str, Any]]:
    """Chainer's outcomes by call and mode: the error's name, or what was computed."""
    found: dict[str, dict[str, Any]] = {}
    for case, outcome in json.loads((RECORDED / f"{name}.json").read_text()).items():
        call, _, mode = case.rpartition(" of ")
        failed = "error" in outcome
        found.setdefault(call, {})[mode] = outcome["error" if failed else "value"]
        if failed:
            found[call][mode] = outcome["error"][0]
    return found


def plain(x: Any) -> Any:
    return x


class Inputs:
    """The names in a call; its float arrays become variables."""

    def __init__(self, library: Any, n: int, dtype: str, layout: Any = plain) -> None:
        self.library, self.layout, self.dtype = library, layout, dtype
        self.variables: list[Any] = []
        self.drawn = 0
        self.names = {"N": n, "numpy": numpy, "i": self.integers}
        self.names["F"] = library.functions
        self.names.update(s=self.signed, u=self.positive, DTYPE=dtype)
        self.names["coo"] = library.utils.CooMatrix

    def draw(self, shape: tuple[int, ...]) -> numpy.ndarray:
        """Numbers in (0, 1), no two alike, the same with every NumPy."""
        size = int(numpy.prod(shape))
        self.drawn += size + 3
        return ((numpy.arange(size) + self.drawn) * 0.6180339887 % 1).reshape(shape)

    def variable(self, x: numpy.ndarray) -> Any:
        array = self.layout(numpy.asarray(x).astype(self.dtype))
        self.variables.append(self.library.Variable(array))
        return self.variables[-1]

    def positive(self, *shape: int) -> Any:
        return self.variable(0.05 + 0.9 * self.draw(shape))

    def signed(self, *shape: int) -> Any:
        return self.variable(4 * self.draw(shape) - 2)

    def integers(self, below: int, *shape: int) -> numpy.ndarray:
        return self.layout((self.draw(shape) * below).astype("i"))


def digest(y: Any) -> list[Any]:
    """Dtype, shape, a weighted sum, the sum of the absolute values."""
    x = numpy.asarray(y).astype("d")
    weights = 1 + 0.5 * numpy.cos(numpy.arange(x.size)).reshape(x.shape)
    sums = (float((x * weights).sum()), float(abs(x).sum()))
    finite = [float(f"{v:.6g}") if abs(v) < numpy.inf else None for v in sums]
    return [str(y.dtype), list(y.shape), *finite]


def flat(ys: Any) -> list[Any]:
    if isinstance(ys, (list, tuple)):
        return [part for y in ys for part in flat(y)]
    return [ys]


def outcome(call: str, inputs: Inputs) -> Any:
    """The error's name, or what the call and its gradients are."""
    numpy.random.seed(0)
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return computed(call, inputs)
        except Exception as error:
            return type(error).__name__


def computed(call: str, inputs: Inputs) -> dict[str, Any]:
    """What the call and its gradients are."""
    with inputs.library.using_config("dtype", numpy.dtype(inputs.dtype)):
        ys = [y for y in flat(eval(call, inputs.names)) if hasattr(y, "dtype")]
        outputs = [digest(getattr(y, "array", y)) for y in ys]
        found: dict[str, Any] = {"outputs": outputs}
        try:
            found["gradients"] = gradients(inputs.library, ys, inputs.variables)
        except Exception as error:
            found["gradients"] = type(error).__name__
    return found


def gradients(library: Any, ys: list[Any], xs: list[Any]) -> list[Any]:
    ys = [y for y in ys if getattr(y, "requires_grad", False) and y.dtype.kind == "f"]
    starts = []
    for y in ys:
        values = 1 + 0.5 * numpy.sin(numpy.arange(y.size))
        starts.append(library.Variable(values.reshape(y.shape).astype(y.dtype)))
    gxs = library.grad(ys, xs, starts) if ys else [None] * len(xs)
    return [gx if gx is None else digest(gx.array) for gx in gxs]


def same(expected: list[Any], found: list[Any], tolerance: float | None) -> None:
    """Asserts that arrays are equal; without a tolerance only dtypes and shapes.

    A missing gradient equals zeros.
    """
    assert len(found) == len(expected)
    for y, e in zip(found, expected):
        if e is None:
            assert y is None or y[2:] == [0, 0]
            continue
        assert y[:2] == e[:2]
        for a, b in zip(y[2:], e[2:]) if tolerance is not None else ():
            assert a is b or abs(a - b) <= tolerance * (1 + e[3])


def generated(library: Any, calls: list[str], inputs: Any) -> dict[str, Any]:
    """The cases of calls for the recorder."""

    def case(call: str, mode: str) -> Any:
        return lambda: computed(call, inputs(library, *MODES[mode]))

    return {f"{call} of {mode}": case(call, mode) for call in calls for mode in MODES}
