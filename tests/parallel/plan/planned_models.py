"""Small models, random strategies for them, and what training gives."""

import random

import numpy as np

import renga
import renga.functions as F
import renga.links as L
from renga import planning
from renga.communicators import simulated
from renga.distributed import parallelize
from renga.parallel.plan.costs import Costs, Device
from renga.parallel.plan.plan import Plan
from renga.parallel.plan.strategies.space import LinkSpace
from renga.parallel.plan.strategies.traced_model import TracedModel

DEVICE = Device(1e10, 1e10)


def bytes_of_check(ranks):
    """What a rank sends in a call for all to know whether one reads in a new place.

    It is an all-reduce of 8 bytes, which no prediction counts.
    """
    return 2 * 8 * (ranks - 1) // ranks


class Residual(renga.Chain):
    """A skip, a layer that is called twice, and a layer of each kind."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.c1 = L.Convolution2D(3, 6, 3, pad=1)
            self.b1 = L.BatchNormalization(6)
            self.c2 = L.Convolution2D(6, 6, 3, pad=1)
            self.c3 = L.Convolution2D(6, 8, 2, stride=2, nobias=True)
            self.d1 = L.Deconvolution2D(8, 6, 2, stride=2)
            self.g1 = L.Convolution2D(6, 4, 3, stride=2, pad=1, groups=2)
            self.f1 = L.Linear(4 * 2 * 2, 12)
            self.f2 = L.Linear(12, 5)
        draw = np.random.RandomState(0)
        for _, param in sorted(self.namedparams()):
            param.array[...] = draw.normal(0, 0.3, param.shape)

    def forward(self, x):
        h = F.relu(self.b1(self.c1(x)))
        h = F.relu(self.c2(F.relu(self.c2(h))) + h)
        h = self.g1(F.sigmoid(self.d1(F.leaky_relu(self.c3(h)))))
        return self.f2(F.tanh(self.f1(h)))


class Words(renga.Chain):
    """An embedding and linear layers."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(11, 6)
            self.f1 = L.Linear(6, 9)
            self.f2 = L.Linear(9, 4)
        draw = np.random.RandomState(0)
        for _, param in sorted(self.namedparams()):
            param.array[...] = draw.normal(0, 0.3, param.shape)

    def forward(self, x):
        return self.f2(F.relu(self.f1(self.embed(x))))


def images():
    return np.random.RandomState(1).normal(size=(9, 3, 4, 4)).astype(np.float32)


def words():
    return np.random.RandomState(1).randint(0, 11, 9).astype(np.int32)


CASES = {"Residual": (Residual, images), "Words": (Words, words)}


def plan_of(space):
    return Plan("test", space.cluster, 0.0, 0.0, [], space.link_choices())


def space_of(model, x, ranks):
    cluster = planning.Cluster(ranks, simulated.Machine(intra_size=ranks), False)
    return LinkSpace(TracedModel(model, (x,)), cluster, Costs(DEVICE))


def strategies(model, x, ranks):
    """The hand-made starts of a search, and random ones: those whose links differ."""
    space, generator = space_of(model, x, ranks), random.Random(0)
    chosen = list(space.starts(generator).values())
    chosen += [space.starts(generator)["random"] for _ in range(4)]
    known = []
    for choices in chosen:
        for variable, choice in enumerate(choices):
            space.change(variable, choice)
        links = space.link_choices()
        if links not in known:
            known.append(links)
            yield space


def train(model, x, steps=3):
    """Outputs and gradients of the first step, parameters after the last."""
    optimizer = renga.optimizers.MomentumSGD(0.05).setup(model)
    optimizer.add_hook(renga.optimizer_hooks.GradientClipping(0.1))
    found = {}
    for step in range(steps):
        model.cleargrads()
        y = model(x)
        F.mean(y**2 + y).backward()
        if step == 0:
            found["y"] = np.array(y.array)
            for name, param in model.namedparams():
                found["grad " + name] = whole(param, param.grad)
        optimizer.update()
    for name, param in model.namedparams():
        found[name] = whole(param, param.array)
    return found


def check_plans(ranks, make, x, tolerances=(2e-4, 2e-5)):
    """That training by the plans of these strategies is that of one process."""
    expected = train(make(), x)

    def act(comm):
        return [
            train(parallelize(make(), comm, plan_of(space), x), x)
            for space in strategies(make(), x, comm.size)
        ]

    for results in ranks(act):
        for found in results:
            check_equal(found, expected, *tolerances)


def check_equal(found, expected, rtol=2e-4, atol=2e-5):
    """That training gave the outputs, gradients and parameters that are expected."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol, atol, err_msg=name)


def whole(param, array):
    gather = getattr(param, "whole", None)
    return np.array(array if gather is None else gather(array))
