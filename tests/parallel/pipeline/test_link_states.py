"""Recurrent links that keep their states between batches, in micro-batches."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.optimizers import MomentumSGD
from tests.parallel.pipeline.programs import (
    Layers,
    assert_close,
    batches,
    pipeline,
    whole,
)

DATA = batches((6,) * 5)
RESET = 3  # the batch before which states are reset


class Recurrent(Layers):
    """Two recurrent links, whose states go on from batch to batch."""

    def __init__(self):
        super().__init__()
        with self.init_scope(), renga.using_config("dtype", np.float64):
            self.lstm, self.gru = L.LSTM(8, 8), L.StatefulGRU(8, 8)
        random = np.random.RandomState(8)
        for _, param in sorted(self.namedparams()):
            param.array[...] = random.normal(0, 0.3, param.shape)

    def reset(self):
        self.lstm.reset_state()
        self.gru.reset_state()

    def forward(self, x, t):
        h = self.lstm(F.tanh(self.a(x)))
        h = self.gru(F.tanh(self.b(h)))
        return F.softmax_cross_entropy(self.d(F.tanh(self.c(h))), t)


def truncated():
    """One process, in whole batches, whose states have no graph in the next one."""
    model = Recurrent()
    optimizer = MomentumSGD(0.1).setup(model)
    for i, batch in enumerate(DATA):
        if i == RESET:
            model.reset()
        optimizer.update(model, *batch)
        for state in (model.lstm.h, model.lstm.c, model.gru.h):
            state.unchain_backward()
    found = {path: p.array for path, p in model.namedparams()}
    return found, [model.lstm.h.array, model.gru.h.array]


@pytest.mark.parametrize("recompute", ["none", "all"])
@pytest.mark.parametrize(
    "schedule,ranks", [("gpipe", 3), ("1f1b", 2), ("1f1b", 4), ("interleaved", 2)]
)
def test_states_are_those_of_the_samples(schedule, ranks, recompute):
    expected, states = truncated()

    def run(comm):
        options = {"schedule": schedule, "recompute": recompute}
        model, optimizer = pipeline(Recurrent, comm, DATA, **options)
        for i, batch in enumerate(DATA):
            if i == RESET:
                model.model.reset()
            model.train_batch(optimizer, model.model, batch)
        left = [model.model.lstm.h, model.model.gru.h]
        return whole(model), [None if h.is_meta else h.array for h in left]

    results = local.run(run, ranks=ranks)
    for found, _ in results:
        assert_close(found, expected)
    for i, state in enumerate(states):
        (found,) = [own[i] for _, own in results if own[i] is not None]
        np.testing.assert_allclose(found, state, 1e-9)


def test_a_failed_batch_leaves_the_states(several_ranks):
    x, t = DATA[0]

    def run(comm):
        model, optimizer = pipeline(Recurrent, comm, DATA)
        model.train_batch(optimizer, model.model, DATA[0])
        before = model.model.lstm.h

        def fails(x, t):
            model.model.lstm(F.tanh(model.model.a(x)))
            raise KeyError("a mistake")

        with pytest.raises(KeyError, match="a mistake"):
            model.train_batch(optimizer, fails, DATA[1])
        assert model.model.lstm.h is before
        return True

    assert all(several_ranks(run))
