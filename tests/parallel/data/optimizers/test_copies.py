"""Copies of optimizers that several ranks share."""

import copy
import pickle

import numpy
import pytest

import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.distributed import asynchronous, create_multi_node_optimizer
from renga.optimizers import SGD

X = numpy.random.RandomState(0).normal(size=(4, 3)).astype("f")


def multi_node(**options):
    return lambda optimizer, comm: create_multi_node_optimizer(
        optimizer, comm, **options
    )


def set_up(create, comm):
    model = L.Linear(3, 2, initialW=X[:2, :3])
    return create(SGD(0.1).setup(model), comm)


def loss(model, x):
    return F.mean(model(x) ** 2)


def update(optimizer):
    optimizer.update(loss, optimizer.target, X)


@pytest.mark.parametrize(
    "create",
    [
        multi_node(),
        multi_node(double_buffering=True),
        multi_node(shard="states"),
        asynchronous.create_hogwild_optimizer,
        lambda *args: asynchronous.create_server_optimizer(*args, staleness=0),
    ],
    ids=["multi-node", "double buffering", "sharded", "Hogwild", "server"],
)
def test_after_an_update_there_are_none(create):
    def rank(comm):
        optimizer = set_up(create, comm)
        update(optimizer)
        expected = f"{type(optimizer).__name__}: expected no copy of an optimizer"
        for copied in (copy.deepcopy, copy.copy, pickle.dumps):
            with pytest.raises(TypeError, match=expected):
                copied(optimizer)
        update(optimizer)
        optimizer.join()

    local.run(rank, ranks=2)


def test_before_the_first_update_a_copy_trains_as_the_original():
    def rank(comm):
        optimizer = set_up(multi_node(), comm)
        copied = copy.deepcopy(optimizer)
        for each in (optimizer, copied):
            update(each)
        return optimizer.target.W.array, copied.target.W.array

    for original, other in local.run(rank, ranks=2):
        numpy.testing.assert_array_equal(original, other)
        assert not numpy.shares_memory(original, other)
