"""Rates and hooks of optimizers, which all ranks that share a model have to change."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import optimizer_hooks
from renga.communicators import local
from renga.distributed import parallelize
from renga.optimizers import Adam, MomentumSGD
from renga.utils.type_check import InvalidType

X = np.random.RandomState(0).normal(0, 1, (4, 6, 3)).astype("f")


class Tokens(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.fc = L.Linear(3, 2, initialW=0.5)

    def forward(self, x):
        return self.fc(x, n_batch_axes=2)


def rate(optimizer):
    optimizer.lr = 0.5


def momentum(optimizer):
    optimizer.hyperparam.momentum = 0.5


def hook(optimizer):
    optimizer.add_hook(optimizer_hooks.WeightDecay(0.1))


@pytest.mark.parametrize("strategy", ["channel", "sequence", "spatial"])
@pytest.mark.parametrize(
    "change,text",
    [(rate, "lr = 0.5"), (momentum, "momentum = 0.5"), (hook, "WeightDecay")],
)
def test_changed_on_one_rank(strategy, change, text):
    def run(comm):
        model = parallelize(Tokens(), comm, strategy)
        optimizer = MomentumSGD(0.1).setup(model)

        def loss():
            return F.mean(model(X) ** 2)

        optimizer.update(loss)
        if comm.rank == 1:
            change(optimizer)
        before = [param.array.copy() for param in model.params()]
        with pytest.raises(InvalidType, match=f"settings of optim.* {text}.* on "):
            optimizer.update(loss)
        for param, x in zip(model.params(), before):
            np.testing.assert_array_equal(param.array, x)
        if comm.rank == 0:
            change(optimizer)
        optimizer.update(loss)

    local.run(run, ranks=2)


class Log:
    name, timing = "log", "pre"

    def __call__(self, optimizer):
        pass


def test_a_hook_of_the_user_on_one_rank():
    def run(comm):
        model = parallelize(Tokens(), comm, "channel")
        optimizer = Adam().setup(model)
        if comm.rank == 1:
            optimizer.add_hook(Log())
        optimizer.update(lambda: F.mean(model(X) ** 2))

    local.run(run, ranks=2)


def test_calls_in_test_mode_compare_no_optimizers():
    def run(comm):
        model = parallelize(renga.Sequential(L.Linear(3, 2)), comm, "channel")
        optimizer = Adam().setup(model)
        optimizer.alpha = 1 + comm.rank
        with renga.using_config("train", False):
            model(X[0])

    local.run(run, ranks=2)
