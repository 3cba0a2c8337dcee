"""Parameters that a program adds, replaces or gives to two optimizers."""

import math
import threading
import time

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.distributed import create_multi_node_optimizer
from renga.distributed.asynchronous import (
    create_gossip_optimizer,
    create_local_sgd_optimizer,
    create_server_optimizer,
)
from renga.optimizers import SGD, Adam, MomentumSGD

X = np.random.RandomState(0).normal(0, 1, (6, 3)).astype("f")
SYNCHRONOUS = {
    "server": lambda opt, comm: create_server_optimizer(opt, comm, 0),
    "two servers": lambda opt, comm: create_server_optimizer(opt, comm, 0, shards=2),
    "local": lambda opt, comm: create_local_sgd_optimizer(opt, comm, 1),
    "gossip": lambda opt, comm: create_gossip_optimizer(opt, comm, "dpsgd"),
}


class Scaled(renga.Chain):
    scale = None

    def __init__(self):
        super().__init__()
        with self.init_scope():
            W = np.arange(6, dtype="f").reshape(2, 3) / 6
            self.fc = L.Linear(3, 2, initialW=W)

    def forward(self, x):
        y = self.fc(x)
        return F.mean(y**2 if self.scale is None else (y * self.scale) ** 2)

    def add_scale(self):
        with self.init_scope():
            self.scale = renga.Parameter(np.array([0.5, 2], "f"))


def train(model, optimizer):
    """Two updates, a further parameter, three updates."""
    for step in range(5):
        if step == 2:
            model.add_scale()
            optimizer.setup(model)
        optimizer.update(model, X)
    return optimizer


def values(model):
    return [renga.as_array(p).copy() for _, p in sorted(model.namedparams())]


@pytest.mark.parametrize("make", SYNCHRONOUS.values(), ids=SYNCHRONOUS.keys())
@pytest.mark.parametrize("shared", [True, False], ids=["shared memory", "messages"])
def test_a_parameter_that_is_added(make, shared):
    """All ranks have one batch, so each is equal to one process."""
    serial = Scaled()
    train(serial, MomentumSGD(0.1).setup(serial))

    def run(comm):
        model = Scaled()
        train(model, make(MomentumSGD(0.1).setup(model), comm)).join()
        return values(model)

    for found in local.run(run, ranks=2, shared_memory=shared):
        for x, y in zip(found, values(serial)):
            np.testing.assert_allclose(x, y, 1e-5)


@pytest.mark.parametrize("make", SYNCHRONOUS.values(), ids=SYNCHRONOUS.keys())
def test_a_parameter_that_is_replaced(make):
    """Without setup() it has no update rule, and the copies are of the former one."""

    def run(comm):
        model = Scaled()
        optimizer = make(SGD(0.1).setup(model), comm)
        optimizer.update(model, X)
        del model.fc.W
        with model.fc.init_scope():
            model.fc.W = renga.Parameter(np.ones((2, 3), "f"))
        with pytest.raises(RuntimeError, match="of which 1 are new.*setup again"):
            optimizer.update(model, X)
        assert (model.fc.W.array == 1).all()

    local.run(run, ranks=2)


@pytest.mark.parametrize("way", ["server", "gossip"])
def test_nothing_is_received_before_a_change_is_refused(way):
    begun = threading.Barrier(2)  # each takes what has come before it sends anything

    def run(comm):
        model = Scaled()
        model.add_scale()
        optimizer = SGD(0.1).setup(model)
        if way == "server":
            optimizer = create_server_optimizer(optimizer, comm, staleness=math.inf)
        else:
            optimizer = create_gossip_optimizer(optimizer, comm, "gosgd", probability=1)
        optimizer.update(lambda x: (begun.wait(60), model(x))[1], X + comm.rank)
        comm.barrier()
        time.sleep(0.3)  # parameters are on their way to this rank
        before, scale = values(model.fc), model.scale
        del model.scale
        with pytest.raises(RuntimeError, match="expected the 3 parameters"):
            optimizer.update(model, X + comm.rank)
        np.testing.assert_array_equal(values(model.fc)[1], before[1])
        with model.init_scope():
            model.scale = scale
        optimizer.join()
        assert (values(model.fc)[1] != before[1]).any()

    local.run(run, ranks=2, shared_memory=False)


@pytest.mark.parametrize("way", ["states", "gradients", "parameters", "server"])
def test_two_optimizers_of_one_link(way):
    def run(comm):
        shared = L.Linear(3, 3)
        models = [renga.Sequential(shared, L.Linear(3, 2)) for _ in range(2)]
        first, second = MomentumSGD(0.1), Adam(0.1)
        if way == "server":
            first = create_server_optimizer(first.setup(models[0]), comm, 0)
        else:
            first = create_multi_node_optimizer(first, comm, shard=way)
            first.setup(models[0])
        second.setup(models[1])
        before = values(models[1])
        with pytest.raises(ValueError, match="one optimizer updates, got .0.[Wb]"):
            first.update(lambda: F.sum(models[0](X) ** 2), samples=6)
        if comm.rank == 0:  # the others may have got its parameters
            np.testing.assert_equal(values(models[1]), before)

    local.run(run, ranks=2)
