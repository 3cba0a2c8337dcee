"""The pass before the first update, which gives parameters their shapes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Callable

import numpy

from renga.communicators import Communicator
from renga.core.configuration import using_config
from renga.core.link import Link
from renga.core.link.traces import without_traces
from renga.core.parameter import Parameter


def initialize(
    comm: Communicator,
    models: Sequence[Link],
    forward: Callable[[], object],
    is_first: bool,
) -> None:
    """Has a forward pass in test mode initialize parameters that have no shape.

    Every rank calls it, and all of them run ``forward`` or none does. It leaves nothing
    else behind: recurrent links have the states they had before.

    Args:
        comm: of the ranks that train one model.
        models: the one to be updated, then others that the pass may use.
        forward: the pass.
        is_first: whether no rank has updated the model yet.
    """
    ranks, missing = sums_over_shards(models[0], 1.0, float(have_no_shapes(models)))
    # Ranks of other groups may take part in the forward pass without a sharded
    # parameter that tells of them (dual parallelism), and must not depend on whether
    # parameters of this one have a shape. Those that parallelize has put together have
    # the same parameters.
    is_alone = ranks == 1 and models[0].parallel_run is None
    others_wait = is_first and comm.is_subgroup and is_alone
    if any(comm.allgather_obj(missing)) or others_wait:
        with without_traces(*models), using_config("train", False):
            forward()
        _share_shapes(comm, models[0])


def _share_shapes(comm: Communicator, model: Link) -> None:
    """Initializes parameters that the pass of another rank has used."""
    named = sorted(model.namedparams())
    own = {name: param.shape for name, param in named if param.is_initialized}
    shapes: dict[str, tuple[int, ...]] = {}
    for found in reversed(comm.allgather_obj(own)):
        shapes.update(found)
    for name, param in named:
        if name in shapes and not param.is_initialized:
            param.initialize(shapes[name])


def have_no_shapes(models: Sequence[Link]) -> bool:
    """Whether models have parameters without a shape."""
    return not all(p.is_initialized for model in models for p in model.params())


def share_loads(model: Link, has_loaded: bool) -> bool | None:
    """Gives ranks that run parallel links together what one of them has loaded.

    Every rank calls it.

    Args:
        model: the parallel links are in it.
        has_loaded: whether this rank has loaded something, as far as the caller knows.

    Returns:
        Whether a rank has; None if there is no parallel link.

    Raises:
        RuntimeError: on all ranks, as its ``loads.share``.
    """
    runs: dict[int, Any] = {
        id(link.parallel_run): link.parallel_run
        for link in model.links()
        if link.parallel_run is not None
    }
    result = None
    for run in runs.values():
        own = has_loaded or run.loads.take_note()
        found = bool(run.comm.all_reduce(numpy.array([int(own)]))[0])
        if found:
            run.loads.share(run.comm, type(model).__name__)
            run.loads.take_note()
        result = bool(result) or found
    return result


def require_all_loaded(params: Iterable[Parameter], has_loaded: bool) -> None:
    """Checks that all ranks that compute a model together have loaded it, or none has.

    Raises:
        ValueError: if only some have.
    """
    comms = (param.model_comm for param in params)
    comm = next((comm for comm in comms if comm is not None), None)
    if comm is None:
        return
    loaded = int(comm.all_reduce(numpy.array([int(has_loaded)]))[0])
    if 0 < loaded < comm.size:
        raise ValueError(
            f"update: expected all {comm.size} ranks with shards of the model to load "
            f"it, or none, got {loaded}"
        )


def sums_over_shards(model: Link, *values: float) -> list[float]:
    """The sums over the ranks that hold the shards of a model's parameters."""
    for _, param in sorted(model.namedparams(include_uninit=False)):
        sums = [param.sum_over_shards(value) for value in (1.0, *values)]
        if sums[0] > 1:
            return sums[1:]
    return list(values)
