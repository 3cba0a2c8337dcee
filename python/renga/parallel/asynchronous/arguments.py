"""Checks of arguments of the functions that make asynchronous optimizers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from renga.communicators import Communicator
from renga.core.optimizer import GradientMethod, Optimizer
from renga.parallel.asynchronous.graphs import Graph
from renga.utils.argument import check_choice, check_count, check_number


def check_participants(
    function: str, optimizer: Optimizer, communicator: Communicator
) -> None:
    """Raises TypeError unless they are an optimizer and a communicator."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{function}: expected an optimizer, got {optimizer!r}")
    if not hasattr(communicator, "bcast_data"):
        raise TypeError(f"{function}: expected a communicator, got {communicator!r}")


def check_timeout(function: str, timeout: object) -> None:
    """Raises TypeError or ValueError unless it is a number of seconds."""
    check_number(f"{function}: timeout", timeout, 0)


def check_staleness(function: str, staleness: float) -> None:
    """Raises TypeError or ValueError unless it is a count of updates or infinite."""
    check_number(f"{function}: staleness", staleness, 0)
    if staleness != math.inf and staleness % 1:
        raise ValueError(
            f"{function}: staleness: expected a whole number or infinity, got "
            f"{staleness}"
        )


def check_rows(function: str, rows: object) -> None:
    """Raises TypeError unless they are functions by name, or None."""
    if rows is None:
        return
    if not isinstance(rows, Mapping) or not all(map(callable, rows.values())):
        raise TypeError(
            f"{function}: rows: expected functions by names of parameters, got {rows!r}"
        )


def check_begin(function: str, begin: Sequence[int | str]) -> None:
    """Raises TypeError or ValueError unless it is a count and its unit."""
    if not isinstance(begin, (tuple, list)) or len(begin) != 2:
        raise TypeError(
            f"{function}: begin: expected a count and its unit, such as (5, 'epoch'), "
            f"got {begin!r}"
        )
    count, unit = begin
    check_count(f"{function}: begin", count, 0)
    check_choice(f"{function}: expected begin in", unit, "iteration", "epoch")


def check_outer(function: str, outer: GradientMethod | None) -> None:
    """Raises TypeError unless it is an optimizer or None."""
    if outer is not None and not isinstance(outer, Optimizer):
        raise TypeError(f"{function}: outer: expected an optimizer, got {outer!r}")


def check_graph(function: str, graph: object) -> None:
    """Raises TypeError unless it is a graph."""
    if not isinstance(graph, Graph):
        raise TypeError(f"{function}: expected a graph, such as Ring(), got {graph!r}")


def check_probability(function: str, probability: float) -> None:
    """Raises TypeError or ValueError unless it is between 0 and 1."""
    check_number(f"{function}: probability", probability, 0)
    if probability > 1:
        raise ValueError(
            f"{function}: probability: expected at most 1, got {probability}"
        )


def check_beta(function: str, beta: float) -> None:
    """Raises TypeError or ValueError unless it is a finite number above 0."""
    check_number(f"{function}: beta", beta)
    if not 0 < beta < math.inf:
        raise ValueError(
            f"{function}: beta: expected a finite number above 0, got {beta}"
        )
