"""Data and model parallelism at once, against the serial model."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import distributed

rng = np.random.default_rng(0)
X = rng.normal(size=(3, 4, 6)).astype("f")  # updates, samples, features
T = rng.integers(3, size=(3, 4)).astype("i")
W1, W2, W3 = (rng.normal(size=s).astype("f") for s in ((5, 6), (4, 5), (3, 4)))


def middle(lazy):
    """The layers of the second model rank; lazy ones find their sizes in a call."""
    return renga.Sequential(
        L.Linear(None if lazy else 5, 4, initialW=W2),
        F.tanh,
        L.Linear(None if lazy else 4, 3, initialW=W3),
    )


def by_shape(model):
    """The parameters, no two of which have one shape."""
    return {param.shape: param.array.copy() for param in model.params()}


def serial():
    model = renga.Sequential(L.Linear(6, 5, initialW=W1), F.tanh, *middle(False))
    optimizer = renga.optimizers.Adam(0.1).setup(L.Classifier(model))
    for x, t in zip(X, T):
        optimizer.update(optimizer.target, x, t)
    return by_shape(model)


@pytest.mark.parametrize("lazy", [False, True])
def test_two_by_two_ranks(ranks, lazy):
    def train(comm):
        if comm.size != 4:
            return None
        data_comm = comm.split(comm.rank % 2, comm.rank)
        model_comm = comm.split(comm.rank // 2, comm.rank)
        model = distributed.MultiNodeChainList(model_comm)
        if model_comm.rank == 0:
            first = renga.Sequential(L.Linear(6, 5, initialW=W1), F.tanh)
            model.add_link(first, rank_out=1)
            model.add_link(renga.Sequential(F.identity), rank_in=1)
            target = L.Classifier(model)
        else:
            model.add_link(middle(lazy), rank_in=0, rank_out=0)
            target = model
        optimizer = distributed.create_multi_node_optimizer(
            renga.optimizers.Adam(0.1), data_comm
        )
        optimizer.setup(target)
        half = slice(2 * data_comm.rank, 2 * data_comm.rank + 2)
        for x, t in zip(X, T):
            batch = (x[half], t[half]) if model_comm.rank == 0 else ()
            optimizer.update(target, *batch)
        return by_shape(model)

    found = ranks(train)
    if found[0] is None:
        return
    for first in (0, 2):
        parts = {**found[first], **found[first + 1]}
        for shape, array in serial().items():
            np.testing.assert_allclose(parts.pop(shape), array, 1e-4, 1e-5)
        assert not parts
