"""Gradients one update late: shared parameters, scales of losses, new parameters."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.distributed import create_multi_node_optimizer

STEPS = 6
RANDOM = np.random.RandomState(11)
X = RANDOM.uniform(-1, 1, (STEPS, 12, 4))
W = RANDOM.uniform(-1, 1, (4, 4))


class Shared(renga.Chain):
    """One matrix of two links, and a link that is used from the fourth step on."""

    def __init__(self, seed=0):
        super().__init__()
        self.step = 0
        with renga.using_config("dtype", np.dtype("float64")), self.init_scope():
            self.first = L.Linear(4, 4, initialW=W + seed)
            self.second = L.Linear(4, 4)
            self.late = L.Linear(None, 4, initialW=W / 2 - seed)
        with self.second.init_scope():
            self.second.W = self.first.W

    def forward(self, x):
        y = self.second(F.tanh(self.first(x)))
        if self.step >= 3:
            y = y + self.late(x)
        self.step += 1
        return F.mean(y**2)


def late_updates(model, optimizer):
    """In one process: each gradient with the scale it was computed with."""
    late = None
    for x in X:
        model.cleargrads()
        model(x).backward(loss_scale=optimizer.loss_scale)
        params = list(model.params(include_uninit=False))
        found = [(p, p.grad, p.loss_scale) for p in params]
        found, late = late, found
        if found is not None:
            model.cleargrads()
            for param, grad, scale in found:
                param.grad, param.loss_scale = grad, scale
            optimizer.update()


def arrays(model):
    return {name: param.array.copy() for name, param in model.namedparams()}


@pytest.mark.parametrize("scales", [False, True])
def test_shared_and_late_parameters(some_ranks, scales):
    def start(seed):
        model = Shared(seed)
        optimizer = renga.optimizers.MomentumSGD(0.2).setup(model)
        if scales:  # it doubles in each update
            optimizer.loss_scaling(interval=1)
        return model, optimizer

    def run(comm):
        model, optimizer = start(comm.rank)
        optimizer = create_multi_node_optimizer(optimizer, comm, double_buffering=True)
        for x in X:
            optimizer.update(model, x[comm.rank :: comm.size])
        assert model.first.W is model.second.W
        return arrays(model), optimizer.loss_scale

    model, optimizer = start(0)
    late_updates(model, optimizer)
    expected = arrays(model)
    assert not np.allclose(expected["/first/W"], W, atol=1e-2)
    for found, scale in some_ranks(run):
        assert scale == optimizer.loss_scale
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-6)


@pytest.mark.parametrize("scale", [None, 4.0])
def test_gradients_of_the_caller_have_the_scale_of_their_backward_pass(
    some_ranks, scale
):
    def run(comm):
        model = L.Linear(4, 4, initialW=W.astype("f"), nobias=True)
        optimizer = renga.optimizers.SGD(0.1)
        optimizer = create_multi_node_optimizer(optimizer, comm, double_buffering=True)
        optimizer.setup(model)
        optimizer.actual_optimizer.loss_scaling(scale=4.0)
        for x in X[:2].astype("f"):
            model.cleargrads()
            F.sum(model(x)).backward(loss_scale=scale)
            optimizer.update()
        return model.W.array

    gradient = np.tile(X[0].astype("f").sum(axis=0), (4, 1))
    for found in some_ranks(run):
        np.testing.assert_allclose(found, W - 0.1 * gradient, 1e-5, 1e-6)
