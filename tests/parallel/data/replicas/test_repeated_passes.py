"""Forward passes that are made again, as rank 0 has loaded other parameters."""

import gc
import weakref

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.distributed import create_multi_node_optimizer
from renga.optimizers import SGD

STEPS, BATCH, WIDTH = 5, 6, 4
X = np.random.RandomState(0).normal(0, 1, (STEPS, BATCH, WIDTH))
SHARDS = [None, "states", "parameters"]


def load(model, seed):
    random = np.random.RandomState(seed)
    for _, param in sorted(model.namedparams()):
        param.array[...] = random.normal(0, 0.5, param.shape)
        param.loads += 1


class Recurrent(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope(), renga.using_config("dtype", np.float64):
            self.lstm = L.LSTM(WIDTH, WIDTH)
            self.norm = L.BatchNormalization(WIDTH)
        load(self, 1)

    def loss(self, x):
        return F.mean(self.lstm(x) ** 2) + F.mean(self.norm(x[:1] * 0 + 1.5) ** 2)


def train(comm, model, loss, shard=None):
    optimizer = SGD(0.5)
    if comm is not None:
        optimizer = create_multi_node_optimizer(optimizer, comm, shard=shard)
    optimizer.setup(model)
    for i in range(STEPS):
        if i in (2, 4) and (comm is None or comm.rank == 0):
            load(model, i)
        x = X[i] if comm is None else X[i][comm.rank :: comm.size]
        optimizer.update(loss, x)
        for link in model.links():
            if isinstance(link, L.LSTM):
                link.h.unchain_backward()
                link.c.unchain_backward()
    return {name: np.array(param.array) for name, param in model.namedparams()}


@pytest.mark.parametrize("shard", SHARDS)
def test_states_of_links_advance_once(shard):
    def run(comm):
        model = Recurrent()
        found = train(comm, model, model.loss, shard)
        return found, model.lstm.h.array, model.norm.avg_mean, model.norm.avg_var

    expected, h, *statistics = run(None)
    for rank, (found, own_h, *own) in enumerate(local.run(run, ranks=2)):
        for name, x in expected.items():
            np.testing.assert_allclose(found[name], x, rtol=0, atol=1e-12)
        np.testing.assert_allclose(own_h, h[rank::2], rtol=0, atol=1e-12)
        np.testing.assert_allclose(own, statistics, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shard", SHARDS)
def test_random_functions_draw_once(ranks_with_own_random_numbers, shard):
    """Each rank's masks are those of its generator, one after another."""

    def made():
        model = renga.Link()
        with model.init_scope():
            model.w = renga.Parameter(np.ones(WIDTH))
        return model

    def run(comm):
        model = made()
        np.random.seed(7 + comm.rank)
        return train(comm, model, lambda x: F.mean(F.dropout(x * model.w) ** 2), shard)[
            "/w"
        ]

    found = ranks_with_own_random_numbers(run)
    ranks = len(found)
    masks = []
    for rank in range(ranks):
        np.random.seed(7 + rank)
        own = [X[i][rank::ranks] for i in range(STEPS)]
        masks.append([F.dropout(np.ones_like(x)).array for x in own])
    model = made()
    for i in range(STEPS):
        if i in (2, 4):
            load(model, i)
        w, gradient = model.w.array, 0.0
        for rank in range(ranks):
            x = X[i][rank::ranks] * masks[rank][i]
            gradient = gradient + 2 * (x**2).sum(0) * w / (BATCH * WIDTH)
        w -= 0.5 * gradient
    for w in found:
        np.testing.assert_allclose(w, model.w.array, rtol=0, atol=1e-12)


def test_graphs_of_earlier_steps_are_freed():
    def run(comm):
        model = Recurrent()
        optimizer = create_multi_node_optimizer(SGD(0.1), comm).setup(model)
        optimizer.update(model.loss, X[0])
        earlier = weakref.ref(model.lstm.h)
        optimizer.update(model.loss, X[1])
        model.lstm.h.unchain_backward()
        model.lstm.c.unchain_backward()
        gc.collect()
        return earlier() is None

    assert all(local.run(run, ranks=2))
