"""Gathers a pipeline's parameters on all ranks, to save or load the model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy

from renga.pipeline.schedule import rank_of_stage
from renga.variable import Variable

if TYPE_CHECKING:
    from renga.communicators import Communicator
    from renga.link import Link
    from renga.parameter import Parameter


@contextlib.contextmanager
def gathered_parameters(
    model: Link, comm: Communicator, optimizer: Any = None
) -> Iterator[None]:
    """A context in which every rank has all parameters, with their update rules.

    Files written in it equal those of a single process. On exit, each rank keeps only
    what belongs to its own stages. Every rank has to enter it.

    Args:
        model: of a pipeline.
        comm: the ranks of the pipeline.
        optimizer: of this rank's parameters.
    """
    params = [param for _, param in sorted(model.namedparams(include_uninit=False))]
    absent = [param for param in params if param.is_meta]
    for param in params:
        _fetch(param, comm, optimizer)
    _fetch_persistent(model, comm)
    try:
        yield
    finally:
        for param in absent:
            param._to_device("meta:0")
            param.update_rule = None


def _fetch(param: Parameter, comm: Communicator, optimizer: Any) -> None:
    owner = rank_of_stage(param.stage, comm.size)
    is_owner = comm.rank == owner
    if not is_owner:
        param.array = numpy.empty(param.shape, param.dtype)
    array = numpy.ascontiguousarray(param.array)
    comm.broadcast(array, owner)
    if not is_owner:
        param.array = array
    if optimizer is None:
        return
    rule = param.update_rule
    state = comm.bcast_obj(_state_of(rule) if is_owner else None, root=owner)
    if not is_owner and state is not None:
        param.update_rule = rule = optimizer.create_update_rule()
        rule.t, rule._state, fp32 = state
        rule._fp32_param = None if fp32 is None else Variable(fp32)
        rule._use_fp32_update = fp32 is not None


def _state_of(rule: Any) -> Any:
    if rule is None:
        return None
    fp32 = rule._fp32_param
    return rule.t, rule._state, None if fp32 is None else fp32.array


def _fetch_persistent(model: Link, comm: Communicator) -> None:
    """Running statistics are those of the stage that has the link's parameters."""
    for _, link in sorted(model.namedlinks(), key=lambda item: item[0]):
        stages = [param.stage for param in link.params() if param.stage >= 0]
        if not link._persistent or not stages:
            continue
        owner = rank_of_stage(min(stages), comm.size)
        own = {name: getattr(link, name) for name in sorted(link._persistent)}
        values = comm.bcast_obj(own if comm.rank == owner else None, root=owner)
        if comm.rank != owner:
            vars(link).update(values)
