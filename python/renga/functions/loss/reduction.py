"""Reduction of losses."""

from __future__ import annotations

from collections.abc import Sequence

from renga import _core
from renga.core.variable import Variable
from renga.functions.math.average import average


def check_reduce(
    name: str, reduce: str, allowed: Sequence[str] = ("mean", "no")
) -> None:
    """Raises ValueError unless ``reduce`` is allowed."""
    if reduce not in allowed:
        listed = " or ".join(map(repr, allowed))
        raise ValueError(f"{name}: expected reduce {listed}, got {reduce!r}")


def reduced(loss: Variable, reduce: str) -> Variable:
    """The sum or the mean of the losses, or the losses themselves."""
    if reduce == "sum":
        return _core.ops.sum(loss)
    return average(loss) if reduce == "mean" else loss
