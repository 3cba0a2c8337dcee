"""Pipelines of all schedules."""

from __future__ import annotations

import contextlib
import inspect
import io
import math

from renga import planning
from renga.communicators import simulated
from renga.distributed import parallelize
from renga.parallel.plan.plan import Plan, Stages
from renga.pipeline import Pipeline
from tests.combinations.column import SameBatches

NEEDS = {
    "gradients by hand": "a pipeline computes the gradients of a loss function",
    "networks in one loss": "a pipeline trains one model",
    "one array": "refused if its links are in several stages, which times decide",
}


class Pipelined(SameBatches):
    """A pipeline with two micro-batches."""

    parts = 2
    options: dict = {}
    lacks = {**SameBatches.lacks, **NEEDS}

    def wrap(self, comm, model, optimizer, example, row):
        example = example[: math.ceil(len(example) / self.parts)]
        options = {"micro_batches": self.parts, **self.options, **told(row)}
        model = Pipeline(model, comm, example, **options)
        return model, model.model, optimizer.setup(model)

    def update(self, trained, loss, args, kwargs):
        trained.model.train_batch(trained.optimizer, loss, kwargs or args)

    def parts_of(self, row):
        # A micro-batch begins with the states of its samples, as a whole batch does,
        # a closure is one micro-batch, and a leaf has the gradient of a whole batch.
        return 1 if row.traits & {"closure", "leaf", "state"} else self.parts

    def saving(self, run, is_last):
        return run.model.gathered_parameters(run.optimizer)

    def finish(self, run):
        run.model.drain()


def told(row):
    """What a pipeline cannot see in the arguments of a loss function."""
    options = {"batch_axis": row.batch_axis}
    if "told samples" in row.traits and "closure" not in row.traits:

        def samples(*args, **kwargs):
            return row.weight(*row.inputs(*args, **kwargs))

        # A pipeline tells a loss's arguments from those of the model alone by this.
        samples.__signature__ = inspect.signature(row.inputs)
        options["samples"] = samples
    return options


class GPipe(Pipelined):
    name = "pipeline, gpipe"
    covers = ("schedule: gpipe",)
    options = {"schedule": "gpipe"}


class OneForwardOneBackward(Pipelined):
    name = "pipeline, 1f1b"
    in_processes = True
    covers = ("schedule: 1f1b",)
    options = {"schedule": "1f1b"}


class Interleaved(Pipelined):
    name = "pipeline, interleaved"
    covers = ("schedule: interleaved",)
    options = {"schedule": "interleaved"}


class Recomputing(Pipelined):
    name = "pipeline, recompute"
    covers = ("recompute",)
    options = {"recompute": "all"}


class PlanWithStages(Pipelined):
    """``parallelize`` with a plan of stages."""

    name = "plan with stages"
    covers = ("plan: stages",)
    lacks = {
        **Pipelined.lacks,
        "other ranks": "a plan is for its number of ranks",
    }

    def wrap(self, comm, model, optimizer, example, row):
        cluster = planning.Cluster(comm.size, simulated.Machine(), False)
        stages = Stages(("/b",), self.parts)
        plan = Plan("combinations", cluster, 0.0, 0.0, [], {}, stages=stages)
        with contextlib.redirect_stdout(io.StringIO()):
            model = parallelize(model, comm, plan, example, **told(row))
        return model, model.model, optimizer.setup(model)


class Stale(Pipelined):
    """Weights change while a batch is on its way: the ranks have to agree."""

    is_exact = False

    def __init__(self, weights):
        self.name = f"pipeline, pipedream, {weights}"
        if weights == "two_versions":
            few = "three ranks need three micro-batches"
            self.lacks = {**Pipelined.lacks, "other ranks": few}
        self.covers = ("schedule: pipedream", f"weights: {weights}")
        self.options = {"schedule": "pipedream", "weights": weights}


KINDS = ("flush", "stash", "two_versions", "spectrain", "pipeoptim")
COLUMNS = [
    *(GPipe(), OneForwardOneBackward(), Interleaved(), Recomputing()),
    PlanWithStages(),
    *map(Stale, KINDS),
]
