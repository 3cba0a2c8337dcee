"""Whole weights given to links of which each rank has a block, and taken from them."""

import copy

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import serializers
from renga.communicators import local
from renga.parallel.parallelize import parallelize
from renga.utils.type_check import InvalidType
from tests.links.parallel.differentiate import in_float64

X = np.random.RandomState(1).normal(size=(4, 3, 6, 5))


class Net(renga.Chain):
    def __init__(self, seed):
        super().__init__()
        random = np.random.RandomState(seed)
        with self.init_scope():
            self.first = L.Convolution2D(3, 4, 3, pad=1)
            self.bn = L.BatchNormalization(4)
            self.up = L.Deconvolution2D(4, 4, 2, groups=2)
            self.last = L.Linear(4 * 7 * 6, 5)
            self.words = L.EmbedID(5, 5)
        for _, param in sorted(self.namedparams()):
            param.array[...] = random.normal(0, 0.3, param.shape)
        self.bn.avg_mean[...] = random.normal(size=4)

    def forward(self, x):
        h = F.relu(self.up(F.relu(self.bn(self.first(x)))))
        return self.last(h) + self.words(np.arange(len(x)))


def values_of(model):
    saved = {}
    serializers.DictionarySerializer(saved).save(model)
    return {name: np.array(value) for name, value in saved.items()}


def in_double(seed):
    with renga.using_config("dtype", np.float64):
        return Net(seed)


def train(model):
    optimizer = renga.optimizers.MomentumSGD(0.05).setup(model)
    for step in range(4):
        if step == 2:
            model.first.W.array = in_double(8).first.W.array
            model.up.copyparams(in_double(8).up)
        loss = F.mean(model(X) ** 2)
        model.cleargrads()
        loss.backward()
        optimizer.update()
        if step == 1:
            model.copyparams(in_double(7))
    return values_of(model)


@pytest.mark.parametrize("has_example", [True, False], ids=["example", "no example"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_training_with_weights_set_by_hand(size, has_example):
    expected = train(in_double(0))

    @in_float64
    def act(comm):
        model = parallelize(in_double(0), comm, "channel", *([X] * has_example))
        return train(model)

    for found in local.run(act, ranks=size):
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, 1e-9, 1e-10, err_msg=name)


def test_copies_between_parallel_and_serial_models(ranks):
    expected = values_of(in_double(5))

    @in_float64
    def act(comm):
        model, other = (
            parallelize(in_double(seed), comm, "channel", *example)
            for seed, example in ((0, [X]), (1, []))
        )
        model.copyparams(in_double(5))
        other.copyparams(model)  # of other layouts
        serial, lazy = in_double(2), in_double(3)
        with lazy.init_scope():
            del lazy.last
            lazy.last = L.Linear(None, 5)  # gets the whole shape
        for each in (serial, lazy):
            each.copyparams(other)
        models = model, other, serial, lazy, copy.deepcopy(model)
        return [values_of(each) for each in models]

    for found in ranks(act):
        for values in found:
            for name, value in expected.items():
                np.testing.assert_array_equal(values[name], value, err_msg=name)


def test_arrays_of_other_shapes_are_refused_and_change_nothing(several_ranks):
    def act(comm):
        model = parallelize(Net(0), comm, "channel")
        before = model.last.W.array.copy()
        with pytest.raises(InvalidType, match=f"rank {comm.rank} of {comm.size}: exp"):
            model.last.W.array = np.zeros((5, 7), "f")
        with pytest.raises(InvalidType, match="expected a whole array of"):
            model.last.W.copydata(renga.Parameter(np.zeros((5, 7), "f")))
        np.testing.assert_array_equal(model.last.W.array, before)
        return True

    assert all(several_ranks(act))
