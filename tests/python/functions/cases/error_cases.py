# ruff: noqa: E501
"""Calls with wrong, odd and mixed arguments, and their outcomes in Chainer 7.8.1.

Each line is a call and, after ``->``, the error or the dtypes and shapes it gives
there. Where renga differs on purpose, its outcome follows after ``|``: wrong shapes
and axes are InvalidType and wrong values ValueError even where Chainer fails otherwise (ZeroDivisionError, AssertionError, a RuntimeError of its own type checks, NumPy's
errors) or accepts them.

``python -m tests.python.functions.cases.error_cases`` with a Chainer that works prints the table again, without
renga's outcomes. In the calls ``h``, ``f``, ``d``, ``i`` and ``l`` make arrays of a shape,
of float16, float32, float64, int32 and int64.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy

OPERATORS = """
V(f(2, 3)) + d(2, 3) -> float32 (2, 3)
V(f(2, 3)) + V(d(2, 3)) -> InvalidType
V(f(2, 3)) * V(i(2, 3)) -> InvalidType
V(f(2, 3)) - V(f(4)) -> InvalidType
V(f(2, 3)) / V(d(2, 3)) -> InvalidType
V(f(2, 3)) ** V(d(2, 3)) -> InvalidType
V(h(2, 3)) + V(f(2, 3)) -> InvalidType
V(h(2, 3)) + 1.5 -> float16 (2, 3)
V(f(2)) + numpy.float64(3) -> float32 (2,)
V(i(2)) + 1 -> int32 (2,)
V(i(2)) + 1.5 -> int32 (2,)
V(i(2)) * 2 -> int32 (2,)
V(f(2)) + None -> TypeError
V(f(2)) + 'a' -> TypeError
V(f(2)) @ V(d(2)) -> float64 ()
V(f(2, 3)) @ V(f(2, 3)) -> InvalidType
V(f(2, 3)) // V(f(2, 3)) -> float32 (2, 3)
-V(i(2)) -> int32 (2,)
abs(V(i(2))) -> InvalidType
V(f(2)) == V(f(2)) -> TypeError
V(f(2)) < V(f(2)) -> TypeError
bool(V(f(2))) -> TypeError
len(V(f(()))) -> TypeError
V(f(2))[3] -> IndexError
V(f(2, 3))[0, 0, 0] -> IndexError
V(f(2, 3))[..., ...] -> IndexError
V(f(2))['a'] -> IndexError
V(f(2))[1.5] -> IndexError
"""


def all_cases() -> str:
    """The lines of the catalogue's rows (``errors``), and of operators."""
    from tests.catalogue import CATALOGUE

    functions = [line for row in CATALOGUE.values() for line in row.errors]
    return "\n".join(functions) + OPERATORS


def namespace(functions: Any, variable: Any) -> dict[str, Any]:
    """The names in the calls."""

    def maker(dtype: str) -> Any:
        def make(*shape: Any) -> numpy.ndarray:
            extents = () if shape == ((),) else shape
            size = int(numpy.prod(extents))
            return (numpy.arange(size) % 4).reshape(extents).astype(dtype)

        return make

    makers = {name: maker(dtype) for name, dtype in zip("hfdil", "efdiq")}
    return {"F": functions, "V": variable, "numpy": numpy, **makers}


def outcome(call: str, names: dict[str, Any]) -> str:
    """The error's name, or the dtypes and shapes of the results."""
    try:
        given = eval(call, dict(names))
    except Exception as error:
        name = type(error).__name__
        return "IndexError" if name == "IndexOutOfRange" else name
    parts = given if isinstance(given, (tuple, list)) else (given,)
    shown = [
        f"{part.dtype} {part.shape}" if hasattr(part, "dtype") else type(part).__name__
        for part in parts
    ]
    return "; ".join(shown) or "nothing"


def table(cases: str) -> list[tuple[str, str]]:
    """Calls with what is expected of renga."""
    rows = []
    for line in cases.strip().split("\n"):
        call, _, outcomes = line.partition(" -> ")
        rows.append((call, outcomes.rpartition(" | ")[2]))
    return rows


def by_name(cases: str) -> dict[str, list[tuple[str, str]]]:
    """The same by the name with which calls begin, for a test of each."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for row in table(cases):
        begin = re.match(r"[\w.]+", row[0])
        groups.setdefault(begin[0] if begin else "operators", []).append(row)
    return groups


def differences(rows: list[tuple[str, str]], names: dict[str, Any]) -> str:
    """Lines about the calls whose outcomes are others than expected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [outcome(call, names) for call, _ in rows]
    return "\n".join(
        f"{call}: expected {expected}, got {other}"
        for (call, expected), other in zip(rows, found)
        if other != expected
    )


if __name__ == "__main__":
    import chainer

    known = namespace(chainer.functions, chainer.Variable)
    for line in all_cases().strip().split("\n"):
        call = line.partition(" -> ")[0]
        print(f"{call} -> {outcome(call, known)}")
