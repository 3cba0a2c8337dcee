"""The collectives of simulated ranks: what each costs a rank, and what it moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from renga import _communicators
from renga.communicators.simulated import costs
from renga.communicators.simulated.costs import Cost
from renga.communicators.simulated.machine import Machine


class CollectiveCall(NamedTuple):
    """One rank's call of a collective.

    Args:
        collective: its name.
        text: what the ranks compare.
        machine: the model of the network.
        rank, size: of the rank, and of its group.
        xs, ys: operands and results.
        op, dtype: of a reduction; "" is the dtype of the operands.
        root: the root, if there is one.
    """

    collective: str
    text: str
    machine: Machine
    rank: int
    size: int
    xs: list[Any]
    ys: list[Any]
    op: str
    dtype: str
    root: int | None

    @property
    def name(self) -> str:
        """The method that is called, to be counted."""
        return self.text.split()[0]

    @property
    def cost(self) -> Cost:
        """What this rank sends, and the time of the collective."""
        return COLLECTIVES[self.collective].cost(self)


def move(calls: Sequence[CollectiveCall]) -> None:
    """Moves the data of all ranks, whose calls match."""
    COLLECTIVES[calls[0].collective].move(calls)


class CollectiveRow(NamedTuple):
    """A row of the table."""

    cost: Callable[[CollectiveCall], Cost]
    move: Callable[[Sequence[CollectiveCall]], None]


def _cost_of_all_reduce(call: CollectiveCall) -> Cost:
    return costs.all_reduce(call.machine, call.size, call.xs, call.dtype)


def _all_reduce(calls: Sequence[CollectiveCall]) -> None:
    totals = [np.empty(y.shape, y.dtype) for y in calls[0].ys]
    operands = [call.xs for call in calls]
    _communicators.reduce(operands, totals, calls[0].op, calls[0].dtype)
    for call in calls:
        _copy(totals, call.ys)


def _reduce_scatter(calls: Sequence[CollectiveCall]) -> None:
    total = np.empty(calls[0].xs[0].shape, calls[0].ys[0].dtype)
    _communicators.reduce([call.xs for call in calls], [total], calls[0].op, "")
    _copy(total, (call.ys[0] for call in calls))


def _all_gather(calls: Sequence[CollectiveCall]) -> None:
    gathered = np.stack([call.xs[0] for call in calls])
    for call in calls:
        call.ys[0][...] = gathered


def _all_gatherv(calls: Sequence[CollectiveCall]) -> None:
    operands = [call.xs[0].copy() for call in calls]
    for call in calls:
        _copy(operands, call.ys)


def _all_to_all(calls: Sequence[CollectiveCall]) -> None:
    operands = np.stack([call.xs[0] for call in calls])
    _copy(operands.swapaxes(0, 1), (call.ys[0] for call in calls))


def _all_to_allv(calls: Sequence[CollectiveCall]) -> None:
    for source in calls:
        for x, destination in zip(source.xs, calls):
            y = destination.ys[source.rank]
            if x is not None and y is not None:
                y[...] = x


def _cost_of_all_to_allv(call: CollectiveCall) -> Cost:
    """The time depends on what all ranks send."""
    others = (x for r, x in enumerate(call.xs) if r != call.rank)
    sizes = [x.nbytes for x in others if x is not None]
    return Cost(len(sizes), sum(sizes), 0.0)


def _broadcast(calls: Sequence[CollectiveCall]) -> None:
    (sent,) = (x for call in calls for x in call.xs)
    for call in calls:
        _copy([sent], call.ys)


def _cost_of_broadcast(call: CollectiveCall) -> Cost:
    (x,) = call.xs or call.ys
    is_root = call.rank == call.root
    return costs.broadcast(call.machine, call.size, x.nbytes, is_root)


def _messages(
    bytes_to_each: Callable[[CollectiveCall], int],
) -> Callable[[CollectiveCall], Cost]:
    """The cost of a message to and from each other rank."""
    return lambda call: costs.all_to_all(call.machine, call.size, bytes_to_each(call))


def _copy(sources: Iterable[Any], results: Iterable[Any]) -> None:
    for y, x in zip(results, sources):
        y[...] = x


_own_bytes = _messages(lambda call: call.xs[0].nbytes)

COLLECTIVES = {
    "all_reduce": CollectiveRow(_cost_of_all_reduce, _all_reduce),
    "reduce_scatter": CollectiveRow(
        _messages(lambda call: call.ys[0].nbytes), _reduce_scatter
    ),
    "all_gather": CollectiveRow(_own_bytes, _all_gather),
    "all_gatherv": CollectiveRow(_own_bytes, _all_gatherv),
    "all_to_all": CollectiveRow(
        _messages(lambda call: call.xs[0].nbytes // call.size), _all_to_all
    ),
    "all_to_allv": CollectiveRow(_cost_of_all_to_allv, _all_to_allv),
    "broadcast": CollectiveRow(_cost_of_broadcast, _broadcast),
}
