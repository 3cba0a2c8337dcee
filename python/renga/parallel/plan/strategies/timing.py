"""Times training steps of several plans in turn."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from renga import functions as F, optimizers
from renga.communicators import Communicator
from renga.core.around_call import variables_in
from renga.core.link import Link
from renga.core.types import Array
from renga.parallel.conversion.strategy import Strategy
from renga.parallel.data.optimizers import create_multi_node_optimizer
from renga.parallel.parallelize import with_strategy
from renga.parallel.pipeline.pipeline import Pipeline
from renga.parallel.placement.shard_ranges import as_slice, shard_range
from renga.parallel.plan.device import lower_quartile, slowest_seconds
from renga.parallel.plan.plan import MULTI_NODE_OPTIMIZER
from renga.parallel.plan.strategies.measurement import run_passes

_ROUNDS = 4


def time_plans(
    model: Link,
    comm: Communicator,
    plans: Mapping[str, Strategy],
    inputs: Sequence[Array],
    rounds: int = _ROUNDS,
) -> dict[str, float]:
    """The lower quartile of the steps of each plan, in seconds, the same on every rank.

    A step is a forward and a backward pass, and an update of a copy of the model. The
    plans take turns, and with them, as ``MULTI_NODE_OPTIMIZER``, what users have
    without a plan, if each rank can have a sample.

    Args:
        rounds: in which each plan has two steps; the second one is timed, since it
            finds its arrays where training would. The first round is not counted.
    """
    steps = {name: _step(model, comm, plan, inputs) for name, plan in plans.items()}
    if 1 < comm.size <= len(inputs[0]):
        steps[MULTI_NODE_OPTIMIZER] = _data_step(model, comm, inputs)
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(rounds):
        for name, step in steps.items():
            step()
            elapsed = slowest_seconds(comm, step)
            if turn > 0:
                times[name].append(elapsed)
    return {name: lower_quartile(own) for name, own in times.items()}


def _data_step(model: Link, comm: Communicator, inputs: Sequence[Any]) -> Any:
    parallel: Any = copy.deepcopy(model)
    comm.bcast_data(parallel)
    optimizer = create_multi_node_optimizer(optimizers.SGD(0.0), comm)
    optimizer.setup(parallel)
    own = as_slice(shard_range(len(inputs[0]), comm.size, comm.rank))

    return lambda: optimizer.update(_sum_of(parallel), *(x[own] for x in inputs))


def _sum_of(model: Any) -> Any:
    """A loss for a model with any outputs."""
    return lambda *xs: sum(F.sum(y) for y in variables_in(model(*xs)))


def _step(
    model: Link, comm: Communicator, plan: Strategy, inputs: Sequence[Any]
) -> Any:
    parallel = with_strategy(model, comm, plan, inputs).model
    optimizer = optimizers.SGD(0.0).setup(parallel)
    if isinstance(parallel, Pipeline):
        return lambda: parallel.train_batch(optimizer, _sum_of(parallel.model), inputs)

    def step() -> None:
        run_passes(parallel, inputs)
        optimizer.update()

    return step
