"""A model cut into stages, of which each rank keeps its own."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from renga.communicators import Communicator
from renga.core.configuration import no_backprop_mode, using_config
from renga.core.link import Link
from renga.core.link.own_values import link_paths
from renga.core.link.sharing_memory import sharing_memory
from renga.functions.noise.seed import unchanged_generator
from renga.parallel.pipeline import measurement, schedule, weights
from renga.parallel.pipeline.batches.reductions import REDUCTIONS
from renga.parallel.pipeline.executor import RECOMPUTE
from renga.parallel.pipeline.partition import Partition, partition
from renga.parallel.pipeline.schedule import rank_of_stage
from renga.parallel.pipeline.stages.stage_parameters import free_elements

# How often a momentum update reads or writes memory as large as the parameters, and
# what versions of the weights add: a copy takes two passes, a prediction three.
_UPDATE_PASSES = 5
_MORE_PASSES = {
    "flush": 0,
    "stash": 2,
    "two_versions": 2,
    "spectrain": 6,
    "pipeoptim": 3,
}


class Options(NamedTuple):
    """How a pipeline runs; the arguments of :class:`~renga.pipeline.Pipeline`."""

    schedule: str
    weights: str
    micro_batches: int
    recompute: str
    reduce: str | None  # None: as the first batch shows
    batch_axis: int
    deferred_batch_norm: bool

    @property
    def flushes(self) -> bool:
        """Whether a batch is completed before the next one begins."""
        return schedule.SCHEDULES[self.schedule].flushes

    def check(self, ranks: int) -> None:
        """Raises ValueError for values that are not known or do not go together."""
        for name, allowed in (
            ("schedule", tuple(schedule.SCHEDULES)),
            ("weights", tuple(weights.KINDS)),
            ("recompute", RECOMPUTE),
            ("reduce", (None, *REDUCTIONS)),
        ):
            if getattr(self, name) not in allowed:
                known = ", ".join(filter(None, allowed))
                raise ValueError(
                    f"Pipeline: expected {name} to be one of {known}, got "
                    f"{getattr(self, name)!r}"
                )
        if self.micro_batches < 1:
            raise ValueError(
                f"Pipeline: expected at least 1 micro-batch, got {self.micro_batches}"
            )
        if self.batch_axis < 0:
            raise ValueError(
                f"Pipeline: expected batch_axis to be at least 0, got {self.batch_axis}"
            )
        if self.weights != "flush" and self.flushes:
            raise ValueError(
                f"Pipeline: expected weights='flush' for {self.schedule}, whose "
                "weights do not change between the passes of a micro-batch, got "
                f"{self.weights!r}"
            )
        if self.weights == "two_versions" and self.micro_batches < ranks:
            raise ValueError(
                f"Pipeline: expected at least {ranks} micro-batches for two_versions, "
                f"one for each rank, got {self.micro_batches}"
            )


def serial_model(model: Link) -> Link:
    """The whole model; of a MultiNodeChainList each rank has only its own links."""
    if hasattr(model, "serial_model"):
        whole: Link = model.serial_model()
        return whole
    for path, link in model.namedlinks():
        if hasattr(link, "serial_model"):
            raise ValueError(
                "Pipeline: expected a model of which every rank has all links, got "
                f"{type(link).__name__} at {path}: use its serial_model() there"
            )
    return model


def cut(
    model: Link,
    comm: Communicator,
    inputs: Sequence[object],
    n_stages: int,
    stages: int | Sequence[str],
    options: Options,
) -> tuple[Partition, dict[str, int]]:
    """Initializes the parameters, cuts the model and frees other ranks' parts.

    Each parameter gets its stage as an attribute.

    Args:
        model: the parameters of rank 0 are used.
        comm: the ranks of the pipeline.
        inputs: examples of the model's arguments.
        n_stages: the number of stages.
        stages: this number, or the links at which the second and later ones start.
        options: of the pipeline.

    Returns:
        The stages; and by paths of links, the stage that computes their persistent
        arrays.
    """
    if not _is_complete(model, inputs):
        with no_backprop_mode(), using_config("train", False):
            model(*inputs)
    comm.bcast_data(model)
    numpy.random.set_state(comm.bcast_obj(numpy.random.get_state()))
    costs, seconds_per_byte = _measured(model, comm, inputs, n_stages, options)
    chunks = n_stages // comm.size
    bubble = schedule.bubble(options.schedule, comm.size, options.micro_batches, chunks)
    if not isinstance(stages, int):
        stages = _first_names(model, stages)
    partitioned = partition(costs, stages, seconds_per_byte, bubble)
    stage_of, owners = partitioned.stage_of, measurement.owners(model)
    for param in model.params():
        param.stage = stage_of.get(owners[id(param)], 0)
    _require_arrays_of_one_stage(model)
    for param in model.params():
        if rank_of_stage(param.stage, comm.size) != comm.rank:
            free_elements(param)
    stages_of_segments = [stage_of[segment.link] for segment in costs.segments]
    homes = {path: stages_of_segments[last] for path, (_, last) in costs.spans.items()}
    return partitioned, homes


def _is_complete(model: Link, inputs: Sequence[Any]) -> bool:
    """Whether a first call gives parameters no shapes, and makes no links."""
    if any(not param.is_initialized for param in model.params()):
        return False
    sample = copy.deepcopy(model)
    with unchanged_generator(), no_backprop_mode(), using_config("train", False):
        sample(*inputs)
    return dict(model.namedparams()).keys() == dict(sample.namedparams()).keys()


def _require_arrays_of_one_stage(model: Link) -> None:
    """Raises ValueError if parameters of several stages share memory."""
    for group in sharing_memory(model):
        first, *others = group
        for each in others:
            if each.param.stage != first.param.stage:
                raise ValueError(
                    "Pipeline: expected parameters of different stages to share no "
                    f"memory, got {first.name} in stage {first.param.stage} and "
                    f"{each.name} in stage {each.param.stage}: use one parameter or "
                    "link under both names"
                )


def _first_names(model: Link, paths: Sequence[str]) -> list[str]:
    """The first name of each link, which may have several."""
    links, first = dict(model.namedlinks()), link_paths(model)
    return [first[id(links[path])] if path in links else path for path in paths]


def _measured(
    model: Link,
    comm: Communicator,
    inputs: Sequence[Any],
    n_stages: int,
    options: Options,
) -> tuple[measurement.SegmentCosts, float]:
    """The costs of the model and of a byte sent, equal on all ranks.

    All ranks measure at the same time, as they will compute: they share memory, and
    sharded links communicate between the replicas of a grid. Those of the first rank
    count, of the first replica, since replicas have to be cut alike.
    """
    sample = copy.deepcopy(model)
    with unchanged_generator():
        costs = measurement.measure(
            sample, sample, inputs, options.micro_batches, least=n_stages
        )
    passes = _UPDATE_PASSES + _MORE_PASSES[options.weights]
    update = passes * measurement.memory_seconds_per_byte(comm.size)
    for segment in costs.segments:
        segment.update = update * segment.parameter_bytes / options.micro_batches
    measured = costs, measurement.seconds_per_byte(comm)
    if comm.rank == 0 and comm.replicas is not None:
        measured = comm.replicas.bcast_obj(measured)
    return comm.bcast_obj(measured)
