"""Links that a model makes when it is called for the first time."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.distributed import parallelize
from renga.optimizers import MomentumSGD

X = np.random.RandomState(0).normal(0, 1, (4, 6, 3)).astype("f")


class Late(renga.Chain):
    def __init__(self, random):
        super().__init__()
        self._random = random
        with self.init_scope():
            self.first = L.Linear(3, 4, initialW=random.normal(0, 1, (4, 3)))

    def forward(self, x):
        if not hasattr(self, "late"):
            W = self._random.normal(0, 1, (4, 4))
            with self.init_scope():
                self.late = L.Linear(4, 4, initialW=W)
        h = F.tanh(self.first(x, n_batch_axes=2))
        return self.late(h, n_batch_axes=2)


@pytest.mark.parametrize("strategy", ["channel", "sequence", "spatial"])
def test_refused_without_an_example(strategy):
    def run(comm):
        model = parallelize(Late(np.random.RandomState(comm.rank)), comm, strategy)
        with pytest.raises(RuntimeError, match="Late: expected a model.*pass parallel"):
            model(X)
        assert not hasattr(model, "late")

    local.run(run, ranks=2)


@pytest.mark.parametrize("strategy", ["channel", "sequence"])
def test_made_by_the_example(strategy):
    def train(model):
        optimizer = MomentumSGD(1e-3).setup(model)
        for _ in range(2):
            optimizer.update(lambda: F.sum(model(X) ** 2))
        return model(X).array

    serial = Late(np.random.RandomState(0))
    serial(X)
    expected = train(serial)

    def run(comm):
        random = np.random.RandomState(comm.rank)
        return train(parallelize(Late(random), comm, strategy, X))

    for found in local.run(run, ranks=2):
        np.testing.assert_allclose(found, expected, 1e-4, 1e-5)
