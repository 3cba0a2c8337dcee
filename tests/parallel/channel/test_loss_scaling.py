"""Gradients that overflow in the shard of one rank only: all ranks skip the update."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import serializers
from renga.communicators import local
from renga.distributed import create_groups, create_multi_node_optimizer
from renga.parallel.parallelize import parallelize

X = np.random.RandomState(1).normal(size=(4, 5)).astype("e")
OVERFLOWS = (1, 2, 4)  # steps in which the gradients of the last output do


class Net(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a = L.Linear(5, 6, initialW=np.linspace(-1, 1, 30).reshape(6, 5))
            self.b = L.Linear(6, 4, initialW=np.linspace(1, -1, 24).reshape(4, 6))

    def forward(self, x):
        return self.b(F.tanh(self.a(x)))


def optimizer():
    made = renga.optimizers.MomentumSGD(0.1)
    made.loss_scaling(interval=2)
    made.loss_scale = 2.0**10
    return made


def train(model, x, optimizer):
    scales = []
    for step in range(6):
        weight = np.ones((len(x), 4), "f4")
        weight[:, 3] = 200 if step in OVERFLOWS else 1

        def loss(x, weight=weight):
            return F.sum(F.cast(model(x), "float32") * weight) / (2 * len(x))

        optimizer.update(loss, x)
        scales.append(float(optimizer.loss_scale))
    saved = {}
    serializers.DictionarySerializer(saved).save(model)
    return scales, {name: np.array(value, "f8") for name, value in saved.items()}


def alone():
    with renga.using_config("dtype", renga.mixed16):
        model = Net()
        return train(model, X, optimizer().setup(model))


def assert_same(results, expected):
    scales, values = expected
    assert min(scales) < scales[0]
    for found, own in results:
        assert found == scales
        for name, value in values.items():
            np.testing.assert_allclose(own[name], value, 2e-3, 2e-3, err_msg=name)


@pytest.mark.parametrize("has_example", [True, False], ids=["example", "no example"])
def test_a_shard_of_one_rank_overflows(several_ranks, has_example):
    def act(comm):
        with renga.using_config("dtype", renga.mixed16):
            model = parallelize(Net(), comm, "channel", *([X] if has_example else []))
            return train(model, X, optimizer().setup(model))

    assert_same(several_ranks(act), alone())


def test_on_a_grid_of_data_and_channels():
    def act(comm):
        with renga.using_config("dtype", renga.mixed16):
            groups = create_groups(comm, channel=2)
            model = parallelize(Net(), groups.channel, "channel", X)
            made = create_multi_node_optimizer(optimizer(), groups.data).setup(model)
            own = X[2 * groups.data.rank : 2 * groups.data.rank + 2]
            return train(model, own, made)

    assert_same(local.run(act, ranks=4), alone())
