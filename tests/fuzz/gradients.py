"""Gradients against those in float64, and these against differences."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy

from .compare import differ
from .draw import Operand, operands, tree_map
from .run import Result, copies, run

STEPS = (1e-5, 1e-7)  # the second, where the first goes over an edge
TOLERANCE = 2e-4
LARGEST_SLOPE = 1e12


def in_double(arguments: Any) -> Any:
    def leaf(x: Any) -> Any:
        if isinstance(x, Operand) and x.value.dtype.kind == "f":
            return dataclasses.replace(x, value=x.value.astype("d"))
        return x

    return tree_map(leaf, arguments)


def moved_by(arguments: Any, relative: float, seed: int) -> Any:
    """The arguments with every operand changed at random by such a part of it."""
    rng = numpy.random.default_rng(seed)

    def leaf(x: Any) -> Any:
        if isinstance(x, Operand) and x.value.dtype.kind == "f":
            noise = relative * rng.normal(size=x.value.shape)
            return dataclasses.replace(x, value=numpy.asarray(x.value * (1 + noise)))
        return x

    return tree_map(leaf, arguments)


def faults(
    function: Any,
    arguments: Any,
    seed: int,
    upstream: Any,
    copy: Result,
    smooth: bool,
    within: float,
) -> list[str]:
    """What is wrong with the gradients of the run with copies."""
    arguments = in_double(arguments)
    double = run(function, arguments, copies(arguments), seed, upstream)
    if double.gradients is None or copy.gradients is None:
        return []

    def jumps(i: int, gradient: Any, error: float) -> bool:
        """Whether rounding of the operands changes a gradient: here is an edge."""
        for k in range(4):
            rounded = moved_by(arguments, error, seed + k)
            near = run(function, rounded, copies(rounded), seed, upstream).gradients
            if near is None or differ(near[i], gradient, error, 0.1):
                return True
        return False

    found = []
    for i, (low, high) in enumerate(zip(copy.gradients, double.gradients)):
        if low is None or high is None:
            continue
        error = error_of(copy) * within
        # A sum of terms that cancel leaves as much as the root of their number.
        terms = max(y.size for y in (*copy.outputs, *copy.gradients) if y is not None)
        least = 0.1 * max(1.0, (terms / max(low.size, 1)) ** 0.5)
        difference = differ(low, high, error, least)
        if difference and not jumps(i, high, error):
            found.append(f"gradient {i}: {low.dtype} {difference}, as in float64")
    if smooth:
        found += by_differences(function, arguments, seed, upstream, double)
    return found


def error_of(result: Result) -> float:
    from .compare import precision

    arrays = [*result.outputs, *(result.gradients or [])]
    return 10 * precision(*(a.dtype for a in arrays if a is not None))


def by_differences(
    function: Any, arguments: Any, seed: int, upstream: Any, double: Result
) -> list[str]:
    """The derivative along a random direction, where all is finite."""
    xs = [x for x in operands(arguments) if x.role == "x"]
    xs = list({id(x): x for x in xs}.values())
    assert double.gradients is not None
    gradients = [g for g in double.gradients if g is not None]
    if any(x.value.dtype != "d" for x in xs):
        return []
    arrays = [*double.outputs, *gradients]
    if any(y is None or not numpy.isfinite(y.astype("d")).all() for y in arrays):
        return []
    if len(gradients) != len(xs):
        return []
    rng = numpy.random.default_rng(seed)
    directions = [rng.normal(size=x.value.shape) for x in xs]
    values = [x.value for x in xs]
    parts = [g * v for g, v in zip(gradients, directions)]
    expected = sum(float(p.sum()) for p in parts)
    scale = 1 + sum(float(abs(p).sum()) for p in parts)
    if scale > LARGEST_SLOPE:
        return []  # near a pole, such as the inverse of a singular matrix

    def moved(step: float) -> float | None:
        for x, value, v in zip(xs, values, directions):
            x.value = numpy.asarray(value + step * v)
        result = run(function, arguments, copies(arguments), seed)
        for x, value in zip(xs, values):
            x.value = value
        if result.error is not None:
            return None
        return weighted(result.outputs[: result.returned], upstream)

    for step in STEPS:
        after, before = moved(step), moved(-step)
        if after is None or before is None:
            return []
        slope = (after - before) / (2 * step)
        error = TOLERANCE * scale * (1e-5 / step) ** 0.5
        if abs(slope - expected) <= error:
            return []
    # At a kink the gradient is one of those between the one-sided derivatives.
    here = moved(0)
    if here is not None:
        sides = sorted([(after - here) / step, (here - before) / step])
        if sides[0] - error <= expected <= sides[1] + error:
            return []
    return [f"derivative {expected} of the gradients, {slope} by differences"]


def weighted(outputs: list[Any], upstream: Any) -> float:
    total = 0.0
    for i, y in enumerate(outputs):
        if y is not None and y.dtype.kind == "f":
            total += float((upstream(i, y).array * y).sum())
    return total
