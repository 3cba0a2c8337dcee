"""Elastic jobs."""

from __future__ import annotations

import tempfile

from renga.distributed import elastic
from renga.training.saved_state import serialize_random_state
from tests.combinations.columns.multi_node import MultiNode
from tests.combinations.row import STEPS
from tests.combinations.run import run_steps


class Saved:
    """What a checkpoint holds of a run."""

    def __init__(self, run):
        self.run = run

    def serialize(self, serializer):
        serialize_random_state(serializer)
        for name, obj in sorted(self.run.objects().items()):
            obj.serialize(serializer[name])


class ElasticRestart(MultiNode):
    """Ranks fail a step after a checkpoint, and others go on from it."""

    name = "elastic restart"
    in_processes = False
    covers = ("elastic restart",)
    lacks = {
        "resume": "its ranks go on from checkpoints anyway",
        "state": "files do not have the states of recurrent links",
    }

    def phases(self, row):
        return (2, None), (STEPS, None)

    def run(self, row, failures=None):
        with tempfile.TemporaryDirectory() as self.folder:
            return super().run(row, failures)

    def load(self, run, comm, row, files):
        checkpoints = elastic.Checkpoints(comm, self.folder)
        assert checkpoints.load(Saved(run)) == 2

    def save(self, run, comm, last):
        if last == STEPS:
            return run.save()
        checkpoints = elastic.Checkpoints(comm, self.folder)
        checkpoints.save(Saved(run), last)
        checkpoints.finalize()
        self.lose_a_step(run, comm)
        return {}

    def lose_a_step(self, run, comm):
        """Trains on, without saving."""
        observed = list(run.observed)
        run_steps(run.row, run, self.replicas(comm.size), 2, 3, print)
        run.observed = observed


COLUMNS = [ElasticRestart()]
