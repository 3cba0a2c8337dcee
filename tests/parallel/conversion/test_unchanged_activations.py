"""Calls that leave a whole activation as it is, and would change a shard of it."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.distributed import parallelize
from renga.optimizers import SGD

X = np.random.RandomState(0).normal(0, 1, (6, 3))
CALLS = {
    "reshape": lambda h: F.reshape(h, (-1, 4)),
    "method": lambda h: h.reshape(6, 4),
    "numpy": lambda h: np.reshape(h, (-1, 4)),
    "broadcast": lambda h: F.broadcast_to(h, (6, 4)),
    "squeeze": lambda h: F.squeeze(h),
    "sum": lambda h: F.sum_to(h, (6, 4)),
    "cast": lambda h: F.cast(h, "float64"),
}


class Network(renga.Chain):
    def __init__(self, call):
        super().__init__()
        random = np.random.RandomState(1)
        self.call = call
        with self.init_scope():
            self.a = L.Linear(3, 4, initialW=random.normal(0, 1, (4, 3)))
            self.b = L.Linear(4, 4, initialW=random.normal(0, 1, (4, 4)))

    def forward(self, x):
        return self.b(self.call(F.tanh(self.a(x))))


def train(model):
    optimizer = SGD(0.1).setup(model)
    for _ in range(2):
        optimizer.update(lambda: F.mean(model(X) ** 2))
    return model(X).array


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("name", CALLS)
def test_equal_one_process(name, size, capsys):
    with renga.using_config("dtype", np.float64):
        expected = train(Network(CALLS[name]))

    def run(comm):
        with renga.using_config("dtype", np.float64):
            return train(parallelize(Network(CALLS[name]), comm, "channel", X))

    for found in local.run(run, ranks=size):
        np.testing.assert_allclose(found, expected, 1e-9)
    stays_sharded = "channel -> " in capsys.readouterr().out
    assert stays_sharded == (name == "cast")
