"""Updates of which each rank makes a share, in memory that all ranks see."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from renga import _core
from renga.communicators import packing
from renga.communicators.data_parallel import sharded_update
from renga.optimizer import GradientMethod

# What a rank can do: nothing of this, move its arrays to where all see them, update.
UNABLE, MOVABLE, READY = range(3)


class SharedUpdates:
    """Averages gradients and updates parameters, each rank a share of both.

    Ranks of one node hold the same parameters and states and would all compute the same
    of them. Here each computes a share and writes it to the others', which takes
    their arrays into memory that all see: those of parameters and states after the
    first update, if nobody else holds them, and gradients at each one.

    Args:
        comm: the communicator.
        optimizer: makes the updates.
        params: initialised parameters, the same on all ranks and in one order.
    """

    def __init__(self, comm: Any, optimizer: Any, params: Sequence[Any]) -> None:
        self._comm = comm
        self._optimizer = optimizer
        self._params = list(params)
        self._refused = comm.size == 1 or len(set(map(id, params))) < len(params)
        self._places: list[Any] = []
        self._where = 0

    @property
    def places(self) -> dict[int, Any]:
        """Where gradients are to lie, by the parameters' positions; or nothing."""
        return dict(enumerate(self._places))

    def stage(self) -> int:
        """UNABLE, MOVABLE or READY: what this rank can do now."""
        able = (
            not self._refused
            and self._comm.get_config("allreduce_grad_dtype") is None
            and isinstance(self._optimizer, GradientMethod)
            and self._optimizer.is_one_pass()
        )
        if not able:
            return UNABLE
        if not self._places:
            return MOVABLE
        # Somebody may have put other arrays in the place of these.
        complete = all(param.update_rule.state is not None for param in self._params)
        there = complete and self._comm.window_layout(list(self._held())) == self._where
        return READY if there else UNABLE

    def move(self) -> None:
        """Moves arrays to where all ranks see them; all ranks are MOVABLE.

        They stay where they are if a rank has others than the rest, or somebody else
        holds one of them.
        """
        sums = self._comm.allgather_obj(self._checksum())
        placed = []
        if sums[0] is not None and len(set(sums)) == 1:
            gradients = [param.array for param in self._params]
            placed = self._comm.copy_to_window([*gradients, *self._held()])
        self._refused = not placed
        if self._refused:
            return
        count = len(self._params)
        self._places, held = placed[:count], iter(placed[count:])
        for param in self._params:
            param.array = next(held)
            state = param.update_rule.state
            for name in state:
                state[name] = next(held)
        self._where = self._comm.window_layout(list(self._held()))

    def update(self, weight: float) -> None:
        """Updates by the mean of the ranks' gradients times their weights."""
        for param, place in zip(self._params, self._places):
            param.grad = packing.take_gradient(param, weight, place)
        update = self._optimizer.update
        sharded_update(self._comm, _core.optimizers.deferred_updates(update))

    def _held(self) -> Iterator[Any]:
        """All ranks' common knowledge: parameters with their states."""
        for param in self._params:
            yield param.array
            yield from param.update_rule.state.values()

    def _checksum(self) -> int | None:
        """Of what ranks have in common; None where it cannot be moved."""
        return packing.checksum(self._held()) if self._is_alone() else None

    def _is_alone(self) -> bool:
        """Whether nobody else holds the arrays, who would be left with old ones."""
        for param in self._params:
            if not (param._owns_array and param.array.flags.c_contiguous):
                return False
            for x in param.update_rule.state.values():
                # Held by the state, by x, and by the call.
                known = isinstance(x, numpy.ndarray) and sys.getrefcount(x) <= 3
                if not (known and x.flags.c_contiguous and x.shape == param.shape):
                    return False
        return True
