"""Pipelines of all schedules."""

from __future__ import annotations

import math

from renga.pipeline import Pipeline
from tests.combinations.column import SameBatches


class Pipelined(SameBatches):
    """A pipeline with two micro-batches."""

    parts = 2
    options: dict = {}
    lacks = {
        **SameBatches.lacks,
        "gradients by hand": "a pipeline computes the gradients of a loss function",
        "networks in one loss": "a pipeline trains one model",
    }

    def wrap(self, comm, model, optimizer, example):
        example = example[: math.ceil(len(example) / self.parts)]
        options = dict(micro_batches=self.parts, **self.options)
        model = Pipeline(model, comm, example, **options)
        return model, model.model, optimizer.setup(model)

    def update(self, trained, loss, args, kwargs):
        names, inputs = list(kwargs), (*args, *kwargs.values())

        def program(*values):
            return loss(*values[: len(args)], **dict(zip(names, values[len(args) :])))

        trained.model.train_batch(trained.optimizer, program, inputs)

    def saving(self, run):
        return run.model.gathered_parameters(run.optimizer)

    def finish(self, run):
        run.model.drain()


class GPipe(Pipelined):
    name = "pipeline, gpipe"
    covers = ("schedule: gpipe",)
    options = {"schedule": "gpipe"}


class OneForwardOneBackward(Pipelined):
    name = "pipeline, 1f1b"
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


class Stale(Pipelined):
    """Weights change while a batch is on its way: the ranks have to agree."""

    is_exact = False

    def __init__(self, weights):
        self.name = f"pipeline, pipedream, {weights}"
        self.covers = ("schedule: pipedream", f"weights: {weights}")
        self.options = {"schedule": "pipedream", "weights": weights}


KINDS = ("flush", "stash", "two_versions", "spectrain", "pipeoptim")
COLUMNS = [
    *(GPipe(), OneForwardOneBackward(), Interleaved(), Recomputing()),
    *map(Stale, KINDS),
]
