"""How many micro-batches' activations a stage holds."""

import threading
import weakref

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.optimizers import MomentumSGD
from renga.pipeline import Pipeline

STAGES = 4


class Held(renga.FunctionNode):
    """The identity, which notes how many of its kind this rank has in graphs."""

    of_rank = threading.local()

    def forward(self, inputs):
        held = self.of_rank
        held.nodes.add(self)
        held.most = max(held.most, len(held.nodes))
        return inputs

    def backward(self, indexes, grad_outputs):
        return grad_outputs


class Counted(renga.Chain):
    """Each stage has one layer, and one node that is held until its backward pass."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.layers = renga.ChainList(*(L.Linear(3, 3) for _ in range(STAGES)))

    def forward(self, x):
        for layer in self.layers:
            (x,) = Held().apply((F.tanh(layer(x)),))
        return F.sum(x)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize("m", [1, 3, 8])
def test_activations_held_by_each_stage(some_ranks, schedule, m):
    x = np.random.RandomState(0).randn(8, 3).astype("f")

    def run(comm):
        held = Held.of_rank
        held.nodes, held.most = weakref.WeakSet(), 0
        cuts = [f"/layers/{stage}" for stage in range(1, comm.size)]
        options = {"schedule": schedule, "micro_batches": m, "stages": cuts}
        options["reduce"] = "sum"
        model = Pipeline(Counted(), comm, x[:1], **options)
        optimizer = MomentumSGD(0.01).setup(model)
        model.train_batch(optimizer, model.model, (x,))  # finds shapes by running
        assert not held.nodes
        held.most = 0
        for _ in range(2):
            model.train_batch(optimizer, model.model, (x,))
        return held.most

    found = some_ranks(run)
    layers = [1] * len(found)
    layers[-1] += STAGES - len(found)  # the last stage has the other layers, too
    for stage, (most, count) in enumerate(zip(found, layers)):
        held = min(m, len(found) - stage) if schedule == "1f1b" else m
        assert most == held * count
