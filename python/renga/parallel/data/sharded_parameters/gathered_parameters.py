"""Parameters of which each rank keeps a shard, beside sharded states."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from renga import _core
from renga.communicators import Communicator
from renga.core.link.stages import OneStage
from renga.core.optimizer import Optimizer
from renga.core.parameter import Parameter
from renga.core.types import Array
from renga.core.variable import Variable
from renga.parallel.data import buckets
from renga.parallel.data.sharded_parameters.gathered_unit import (
    GatheredUnit,
)
from renga.parallel.data.sharded_parameters.node_parameter import unit_of
from renga.parallel.data.sharded_parameters.parameter_reads import (
    can_read_parameters,
    other_threads,
    parameter_reads,
)
from renga.parallel.data.sharded_parameters.row_service import (
    RowService,
)
from renga.parallel.data.sharded_states.layout import Piece
from renga.parallel.data.sharded_states.states import (
    ShardedStates,
    is_elementwise,
    require_own_memory,
)
from renga.utils.meta import is_method_of

# A parameter of this part of a unit stays gathered for a whole step.
_SMALL_SHARE = 64


class GatheredParameters(ShardedStates):
    """Sharded states, and parameters of which each rank keeps its rows.

    The other rows are gathered from the ranks that keep them when a function reads a
    parameter, and before its backward pass; they are freed after both. Ranks gather
    them when they need them, without others taking part. What Python code does to the
    array of a parameter it does to a copy of its own rank, of which the next update
    takes this rank's pieces.

    Every rank makes one at the same time.

    Args:
        comm: the communicator.
        service: of rows.
        lock: that of the parameters' places.
        optimizer, params: those of :class:`ShardedStates`.
        assigned: indices of parameters in buckets.

    Source: Rajbhandari et al., ZeRO: memory optimizations toward training trillion
    parameter models, SC 2020 (stage 3).
    """

    def __init__(
        self,
        comm: Communicator,
        service: RowService,
        lock: AbstractContextManager[object],
        optimizer: Optimizer,
        params: Sequence[Parameter],
        assigned: Sequence[Sequence[int]],
    ) -> None:
        self._service = service
        self._lock = lock
        self._reads = parameter_reads()
        super().__init__(comm, optimizer, params, _units_of(params, assigned))
        self._settle()
        service.keep({unit.number for unit in self._units})
        # This frees the memory of the arrays that the parameters had.
        _core.empty_cache(_core.host_name())

    def _allocate(self) -> None:
        rank, params = self._comm.rank, self._params
        ends = numpy.cumsum([layout.row_bytes for layout in self.layouts])
        memory = self._service.empty(int(ends[-1]))
        self._units = [
            GatheredUnit(
                self._service,
                self._reads,
                self._lock,
                rank,
                layout,
                part.view(layout.dtype),
                params,
                stays=all(_is_small(params[i]) for i in layout.indices),
            )
            for layout, part in zip(self.layouts, numpy.split(memory, ends[:-1]))
        ]
        for unit in self._units:
            other_threads.add(unit)

    def _own_part(self, b: int, piece: Piece) -> Array:
        return self._units[b].own_part(piece)

    def _adopt_arrays(self) -> None:
        if not all(unit_of(param) for param in self._params):
            require_own_memory(self._params)
        self._wait()  # others may still gather parameters
        for unit in self._units:
            unit.take_own_copies()

    def _gather_all(self) -> None:
        self._settle()

    def _settle(self) -> None:
        """Frees the numbers that this rank does not keep, once all rows are written."""
        for unit in self._units:
            unit.publish()
        self._wait()
        for unit in self._units:
            unit.place()
        self._reads.end_step()

    def require_own_graph(self, loss: Variable | None) -> None:
        if getattr(loss, "creator_node", None) is not None:
            if not self._reads.has_read:
                raise RuntimeError(
                    "update: expected the loss function to compute the loss in the "
                    'first update with shard="parameters", which divides them before '
                    "it, got a loss that was computed earlier"
                )

    def release(self) -> None:
        for unit in self._units:
            unit.make_own()
        self._wait()

    def _wait(self) -> None:
        """Waits for all ranks, none of which has asked for rows without an answer."""
        self._reads.finish()
        # The service stops updating before the barrier: a rank that has passed it may
        # be at its end.
        self._service.set_updating(False)
        self._service.forget_others()
        self._comm.barrier()


def _units_of(
    params: Sequence[Parameter], assigned: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Indices of parameters that are gathered together, in the order of buckets.

    A unit is a bucket that is full, not one that has room for the next parameter. Small
    parameters are in units of their own, which come last: their gradients are complete
    at the end.
    """
    order = [i for bucket in assigned for i in bucket]
    return [
        unit
        for is_small in (False, True)
        for unit in _full_units(
            params, [i for i in order if _is_small(params[i]) == is_small]
        )
    ]


def _full_units(params: Sequence[Parameter], order: Sequence[int]) -> list[list[int]]:
    units: list[list[int]] = []
    size = 0
    for i in order:
        param = params[i]
        is_full = size >= buckets.BUCKET_BYTES
        if not units or is_full or param.dtype != params[units[-1][0]].dtype:
            units.append([])
            size = 0
        units[-1].append(i)
        size += _bytes_of(param)
    return units


def _is_small(param: Parameter) -> bool:
    """Whether to gather a parameter again would cost more than its memory is worth."""
    return _bytes_of(param) <= buckets.BUCKET_BYTES // _SMALL_SHARE


def _bytes_of(param: Parameter) -> int:
    return int(param.size * param.dtype.itemsize)


def may_gather(
    comm: Communicator, optimizer: Optimizer, params: Sequence[Parameter]
) -> bool:
    """Whether parameters are gathered from other ranks; every rank calls it.

    They are not where all ranks share memory and keep them once, nor in a model that
    several ranks compute together, and where the optimizer's rules or hooks need whole
    parameters: there each rank keeps them.
    """
    is_on_host = all(param.xp is numpy for param in params)
    shares_all = is_on_host and comm.size == comm.intra_size and comm.shares_memory()
    can = (
        comm.size > 1
        and not shares_all
        and isinstance(comm, Communicator)
        and not comm.is_simulated  # a simulated rank has one thread
        and can_read_parameters()
        and _is_run_here(optimizer.target)
        and is_elementwise(optimizer, params)
        and all(map(_is_plain, params))
    )
    return all(comm.allgather_obj(can))


def _is_run_here(link: Any) -> bool:
    """Whether this rank computes all of a link and of those under it, by itself."""
    is_whole = is_method_of(link, OneStage, "params_of_all_stages")
    return (
        is_whole
        and link.parallel_run is None
        and all(map(_is_run_here, link.children()))
    )


def _is_plain(param: Parameter) -> bool:
    """Whether it is a whole parameter, of one of NumPy's dtypes."""
    return (
        param.model_comm is None
        and not param.is_divided
        and not param.is_meta
        and _core.dtype_name(param) != "bfloat16"
    )
