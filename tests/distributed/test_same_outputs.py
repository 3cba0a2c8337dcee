"""Parallel models that read of their activations what only shards have."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import RankFailed, local
from renga.distributed import parallelize

X = np.random.RandomState(0).normal(0, 1, (8, 4))


class Between(renga.Chain):
    """A function between two links."""

    def __init__(self, function):
        super().__init__()
        draw = np.random.RandomState(1).normal
        self.function = function
        with self.init_scope():
            self.first = L.Linear(4, 6, initialW=draw(0, 1, (6, 4)))
            self.last = L.Linear(6, 3, initialW=draw(0, 1, (3, 6)))

    def forward(self, x):
        return {"y": (self.last(self.function(self.first(x))),)}


def made(function, *inputs):
    """The outputs of the parallel model on each of two ranks."""

    def rank(comm):
        with renga.using_config("dtype", np.float64):
            model = parallelize(Between(function), comm, "channel", *inputs)
            return model(X)["y"][0].array

    return local.run(rank, ranks=2)


@pytest.mark.parametrize(
    "function",
    [
        lambda h: h / h.size,
        lambda h: h * np.abs(h.array).max(),
        lambda h: h - len(h[0]),
    ],
    ids=["size", "elements", "length"],
)
def test_what_is_read_from_a_shard_is_refused(function):
    with pytest.raises((ValueError, RankFailed), match="it reads shapes or elements"):
        made(function, X)


def test_other_models_are_as_the_serial_one():
    with renga.using_config("dtype", np.float64):
        expected = Between(F.tanh)(X)["y"][0].array
    for found in made(F.tanh, X):
        np.testing.assert_allclose(found, expected, 1e-12)


def test_outputs_that_depend_on_random_numbers_are_not_compared():
    made(lambda h: h * np.random.uniform(0.5, 1.0), X)
