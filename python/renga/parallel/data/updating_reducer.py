"""Updates of which each rank computes a shard, in memory that all ranks share."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy

from renga import _core
from renga.communicators import Communicator
from renga.communicators.data_parallel import sharded_update
from renga.core.optimizer import GradientMethod, Optimizer
from renga.core.parameter import Parameter
from renga.parallel.data.gradients import take_gradient
from renga.parallel.data.reducer import Reducer
from renga.parallel.data.replicas.states import checksum_of
from renga.parallel.data.synchronization import Eligibility
from renga.parallel.data.tracing import span


class UpdatingReducer(Reducer):
    """Averages gradients and updates parameters in one pass, each rank a shard of both.

    Ranks of one node have the same parameters and optimizer states, and would all
    compute the same update. Here each rank computes a shard of it and writes the result
    to the memory of the others, who still have everything. It needs the arrays in
    shared memory: parameters and states are moved there after the first update,
    provided that nothing else refers to them; gradients are computed there.

    Args:
        comm: the communicator.
        optimizer: whose update rules make the updates.
        params: initialized parameters, the same on all ranks and in one order.

    Source: Rajbhandari et al., ZeRO: memory optimizations toward training trillion
    parameter models, SC 2020; here to save time, not memory.
    """

    def __init__(
        self, comm: Communicator, optimizer: Optimizer, params: Sequence[Parameter]
    ) -> None:
        self._comm = comm
        self._optimizer = optimizer
        self._params = list(params)
        self._is_refused = comm.size == 1
        self._buffers: list[numpy.ndarray] = []
        self._location = 0

    @property
    def buffers(self) -> Mapping[int, numpy.ndarray]:
        """Shared memory for gradients, by the parameters' indices; empty before."""
        return dict(enumerate(self._buffers))

    def eligibility(self) -> Eligibility:
        """Whether this rank can take part in a sharded update now."""
        is_possible = (
            not self._is_refused
            and self._comm.get_config("allreduce_grad_dtype") is None
            and isinstance(self._optimizer, GradientMethod)
            and self._optimizer.is_one_pass()
        )
        if not is_possible:
            return Eligibility.NOT_POSSIBLE
        if not self._buffers:
            return Eligibility.POSSIBLE
        # The user may have replaced arrays by others, which are not in shared memory.
        has_states = all(_state_of(param) is not None for param in self._params)
        if (
            has_states
            and self._comm.window_layout(list(self._arrays())) == self._location
        ):
            return Eligibility.READY
        return Eligibility.NOT_POSSIBLE

    def move_to_shared_memory(self) -> None:
        """Moves parameters and states; every rank calls it, all of them POSSIBLE.

        Nothing is moved if a rank has other values than the rest, or if something
        outside of the model and the optimizer refers to one of the arrays.
        """
        checksums = self._comm.allgather_obj(self._checksum())
        placed: list[numpy.ndarray] = []
        if checksums[0] is not None and len(set(checksums)) == 1:
            gradients = [param.array for param in self._params]
            placed = self._comm.copy_to_window([*gradients, *self._arrays()])
        self._is_refused = not placed
        if self._is_refused:
            return
        count = len(self._params)
        self._buffers, moved = placed[:count], iter(placed[count:])
        for param in self._params:
            param.array = next(moved)
            state = _state_of(param)
            for name in state:
                state[name] = next(moved)
        self._location = self._comm.window_layout(list(self._arrays()))

    def finalize(self, weight: float) -> None:
        for param, buffer in zip(self._params, self._buffers):
            param.grad = take_gradient(param, weight, buffer)

    def wait(self) -> bool:
        """Averages and updates; False, since no update is left to the caller."""
        updates = _core.optimizers.deferred_updates(self._optimizer.update)
        with span("average and update", "communication"):
            sharded_update(self._comm, updates)
        return False

    def _arrays(self) -> Iterator[numpy.ndarray]:
        """What all ranks have in common: parameters, each with its states."""
        for param in self._params:
            yield param.array
            yield from _state_of(param).values()

    def _checksum(self) -> int | None:
        """Of all arrays; None where one of them must stay where it is."""
        return checksum_of(self._arrays()) if self._are_movable() else None

    def _are_movable(self) -> bool:
        return (
            all(p.owns_array and p.array.flags.c_contiguous for p in self._params)
            and all(
                _is_plain(x, param.shape)
                for param in self._params
                for x in _state_of(param).values()
            )
            and all(
                _replace_by_copy(_state_of(param), name)
                for param in self._params
                for name in list(_state_of(param))
            )
        )


def _state_of(param: Parameter) -> Any:
    """The arrays of a parameter's update rule; None before the first update."""
    rule: Any = param.update_rule
    return rule.state


def _is_plain(x: Any, shape: tuple[int, ...]) -> bool:
    """Whether a state is an array with the elements of a parameter, in their order."""
    return isinstance(x, numpy.ndarray) and x.flags.c_contiguous and x.shape == shape


def _replace_by_copy(state: dict[str, Any], name: str) -> bool:
    """Replaces an array by a copy, unless something but ``state`` refers to it.

    The reference is given up: where the array lives on, the user has it, or a view of
    it, and expects to see the updates; then it is put back.

    Returns:
        Whether it was replaced.
    """
    original = weakref.ref(state[name])
    state[name] = state[name].copy()
    survivor = original()
    if survivor is not None:
        state[name] = survivor
    return survivor is None
